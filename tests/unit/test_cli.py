"""The command line: what it hands to the launch plans, and what it says when something is wrong."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ooospec_agents import cli, weights
from ooospec_agents._version import __version__
from ooospec_agents.predictor import folder as predictor_folder
from ooospec_agents.process import LaunchPlan
from ooospec_agents.vllm_plugin import launch
from ooospec_agents.weights import WeightsError


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have replaced this process."""
    commands: list[list[str]] = []
    monkeypatch.setattr(LaunchPlan, "run", lambda plan: commands.append(plan.argv))
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: object())
    return commands


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch, started: list[list[str]]) -> dict[str, Any]:
    """What the target's plan was asked for."""
    asked: dict[str, Any] = {}

    def plan_target(model: str, **settings: Any) -> LaunchPlan:
        asked.update(settings, model=model)
        return LaunchPlan(["vllm", model])

    monkeypatch.setattr(launch, "plan_target", plan_target)
    return asked


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(weights, "resolve", lambda name: tmp_path / "found")
    return tmp_path / "found"


def test_version_is_the_packages() -> None:
    assert invoke("version").output == f"{__version__}\n"


def test_weights_prints_the_folder(tmp_path: Path) -> None:
    assert invoke("weights", str(tmp_path)).output == f"{tmp_path}\n"


def test_unknown_flags_reach_vllm_in_order(planned: dict[str, Any], tmp_path: Path) -> None:
    flags = ["--max-model-len", "4096", "-tp", "2", "--compilation-config", '{"a": 1}', "--enforce-eager"]
    result = invoke("serve", "target", "--model", str(tmp_path), *flags, "--port", "9000")
    assert result.exit_code == 0, result.output
    assert planned["extra_args"] == flags
    assert planned["port"] == 9000


def test_the_name_asked_for_is_the_name_served(planned: dict[str, Any], resolved: Path) -> None:
    invoke("serve", "target", "--model", "Org/Model")
    assert planned["model"] == str(resolved)
    assert planned["extra_args"] == ["--served-model-name", "Org/Model"]


def test_a_served_name_of_the_users_own_is_kept(planned: dict[str, Any], resolved: Path) -> None:
    invoke("serve", "target", "--model", "Org/Model", "--served_model_name", "mine")
    assert planned["extra_args"] == ["--served_model_name", "mine"]


def test_vllm_finds_the_model_where_its_flags_say_how(planned: dict[str, Any], resolved: Path) -> None:
    invoke("serve", "target", "--model", "Org/Model", "--revision=abc")
    assert planned["model"] == "Org/Model"


def test_print_shows_the_command_and_starts_nothing(resolved: Path, started: list[list[str]]) -> None:
    result = invoke("serve", "target", "--model", "Org/Model", "--print", "--max-model-len", "4096")
    assert "--model Org/Model" in result.output
    assert "--max-model-len 4096" in result.output
    assert started == []


@pytest.mark.parametrize(("stages", "said"), [("2", True), ("1", False)])
def test_print_says_why_a_server_will_not_draft(
    resolved: Path, started: list[list[str]], stages: str, said: bool
) -> None:
    result = invoke("serve", "target", "--model", "Org/Model", "--print", "--pipeline-parallel-size", stages)
    assert result.exit_code == 0
    assert ("ooospec: this server drafts nothing: vLLM cannot draft with" in result.stderr) is said
    assert ("--speculative-config" in result.stdout) is not said
    assert f"--pipeline-parallel-size {stages}" in result.stdout
    assert started == []


def test_sidecar_is_a_plain_server(tmp_path: Path, started: list[list[str]]) -> None:
    result = invoke("serve", "sidecar", "--model", str(tmp_path), "--port", "8010", "--seed", "1")
    assert result.exit_code == 0, result.output
    (command,) = started
    assert command[command.index("--port") + 1] == "8010"
    assert command[-2:] == ["--seed", "1"]


def test_missing_adapter_is_named(tmp_path: Path) -> None:
    result = invoke("serve", "sidecar", "--model", str(tmp_path), "--adapter", "/missing/adapter")
    assert result.exit_code == 1
    assert "no LoRA adapter in '/missing/adapter'" in result.output


def test_folder_without_an_adapter_is_named(tmp_path: Path) -> None:
    result = invoke("serve", "sidecar", "--model", str(tmp_path), "--adapter", str(tmp_path))
    assert result.exit_code == 1
    assert f"no LoRA adapter in {str(tmp_path)!r}" in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_unknown_model_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Path:
        raise WeightsError(f"Model {name!r} is unknown.")

    monkeypatch.setattr(weights, "resolve", refuse)
    result = invoke("serve", "target", "--model", "Org/Unknown")
    assert (result.exit_code, result.output) == (1, "ooospec: Model 'Org/Unknown' is unknown.\n")


def test_missing_vllm_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    result = invoke("serve", "sidecar", "--model", str(tmp_path))
    assert result.exit_code == 1
    assert result.output == (
        "ooospec: vLLM is not installed here: install 'ooospec-agents[vllm]' or, without a GPU, '...[cpu]'.\n"
    )


def test_debugging_keeps_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOOSPEC_DEBUG", "1")
    assert isinstance(invoke("weights", "./missing").exception, WeightsError)


@pytest.mark.parametrize("command", [[], ["serve"], ["serve", "target"], ["serve", "sidecar"], ["weights"]])
def test_every_command_has_help(command: list[str]) -> None:
    result = invoke(*command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys, ooospec_agents.cli; "
        "print([name for name in ('torch', 'vllm', 'transformers', 'langchain_core') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert done.stdout == "[]\n"


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in place of the shipped predictor's, still empty."""
    monkeypatch.setattr(predictor_folder, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "shipped").mkdir()
    return tmp_path / "shipped"


def fill(folder: Path) -> Path:
    for name in predictor_folder.FILES:
        (folder / name).touch()
    return folder


def test_a_target_uses_the_span_predictor_where_there_is_one(
    planned: dict[str, Any], resolved: Path, shipped: Path
) -> None:
    invoke("serve", "target", "--model", "m")
    assert planned["predictor"] == "lexical"
    fill(shipped)
    invoke("serve", "target", "--model", "m")
    assert planned["predictor"] == str(shipped)


@pytest.mark.parametrize("chosen", ["lexical", "none"])
def test_a_target_does_without_it_if_told_to(
    planned: dict[str, Any], resolved: Path, shipped: Path, chosen: str
) -> None:
    fill(shipped)
    invoke("serve", "target", "--model", "m", "--predictor", chosen)
    assert planned["predictor"] == chosen


def test_a_predictor_of_ones_own_is_a_folder(
    planned: dict[str, Any], resolved: Path, shipped: Path, tmp_path: Path
) -> None:
    invoke("serve", "target", "--model", "m", "--predictor", str(fill(tmp_path)))
    assert planned["predictor"] == str(tmp_path)


def test_a_span_predictor_that_is_not_there_is_said_to_be_missing(
    planned: dict[str, Any], resolved: Path, shipped: Path
) -> None:
    result = invoke("serve", "target", "--model", "m", "--predictor", "span")
    assert result.exit_code == 1
    assert "holds no span predictor" in result.output
    assert planned == {}
