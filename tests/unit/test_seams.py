import zipfile
from pathlib import Path

import pytest

from ooospec_agents.vllm_plugin import compat
from ooospec_agents.vllm_plugin.seams import Seam, check_seams, folder_reader, wheel_reader

SOURCE = """
class Runner:
    limit: int

    def step(self, rows, *, width=1):
        self.sample(
            rows,
        )
        self.draft(rows)
"""


def check(*, name: str = "", parameters: tuple[str, ...] = (), mentions: tuple[str, ...] = ()) -> list[str]:
    return check_seams(lambda file: SOURCE, (Seam("runner.py", name, parameters, mentions, "drafts"),))


def test_what_is_there_is_found() -> None:
    assert check(name="Runner.step", parameters=("rows", "width"), mentions=("self.sample(rows)", "draft(")) == []


def test_missing_method_is_named() -> None:
    assert check(name="Runner.stop") == ["vllm/runner.py Runner.stop: there is no 'stop', needed: drafts"]


def test_parameters_must_keep_their_order() -> None:
    assert check(name="Runner.step", parameters=("width", "rows")) == [
        "vllm/runner.py Runner.step: parameter 'rows' is missing or elsewhere, needed: drafts"
    ]


def test_calls_must_keep_their_order() -> None:
    assert check(name="Runner.step", mentions=("self.draft(", "self.sample(")) == [
        "vllm/runner.py Runner.step: 'self.sample(' is missing or elsewhere, needed: drafts"
    ]


def test_class_body_is_searched() -> None:
    assert check(name="Runner", mentions=("limit: int",)) == []


def test_whole_file_is_searched() -> None:
    assert check(mentions=("class Runner",)) == []


def test_missing_file_is_named(tmp_path: Path) -> None:
    assert check_seams(folder_reader(tmp_path), (Seam("gone.py", why="drafts"),)) == [
        "vllm/gone.py: cannot be read (FileNotFoundError), needed: drafts"
    ]


def test_wheel_is_read(tmp_path: Path) -> None:
    wheel = tmp_path / "vllm.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("vllm/runner.py", SOURCE)
    read = wheel_reader(wheel)
    assert check_seams(read, (Seam("runner.py", "Runner"),)) == []
    assert check_seams(read, (Seam("gone.py", why="drafts"),)) == [
        "vllm/gone.py: cannot be read (KeyError), needed: drafts"
    ]


@pytest.mark.parametrize("version", ["0.32.0", "0.33.0", "0.33.2"])
def test_supported_versions(version: str) -> None:
    assert compat.version_obstacle(version) == ""


@pytest.mark.parametrize("version", ["0.31.9", "0.34.0", "1.0.0"])
def test_other_versions_are_refused(version: str) -> None:
    assert compat.version_obstacle(version) == f"vLLM {version} is not supported; 0.32 and 0.33 are"


def test_no_version_is_refused() -> None:
    assert "''" in compat.version_obstacle("")


class Parallel:
    def __init__(self, stages: int) -> None:
        self.pipeline_parallel_size = stages


def test_pipeline_parallel_is_refused() -> None:
    assert compat.parallel_obstacle(Parallel(2)) == "vLLM cannot draft with pipeline_parallel_size=2; 1 works"
    assert compat.parallel_obstacle(Parallel(1)) == ""


class Point:
    name = "mine"


def test_installed_logits_processors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat.metadata, "entry_points", lambda group: [Point()])
    assert compat.plugin_obstacle() == "vLLM would silently not load the installed logits processors mine"
    monkeypatch.setattr(compat.metadata, "entry_points", lambda group: [])
    assert compat.plugin_obstacle() == ""


def test_rust_front_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat.metadata, "entry_points", lambda group: [])
    monkeypatch.setenv("VLLM_USE_RUST_FRONTEND", "1")
    assert "VLLM_USE_RUST_FRONTEND" in compat.plugin_obstacle()


def test_moved_seam_of_an_unchecked_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "vllm_version", lambda: "0.33.7")
    monkeypatch.setattr(compat, "check_seams", lambda read: ["vllm/x.py f: there is no 'f', needed: drafts"])
    monkeypatch.setattr(compat.importlib.util, "find_spec", lambda name: Spec())
    assert compat.seam_obstacle().startswith("this vLLM differs from what is supported: vllm/x.py f")


class Spec:
    submodule_search_locations = ("/nowhere",)
