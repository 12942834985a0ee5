"""The sidecar's command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ooospec_agents.process import LaunchError
from ooospec_agents.sidecar import launch
from ooospec_agents.sidecar.launch import command, plan_sidecar


def adapter(folder: Path, rank: int) -> str:
    (folder / "adapter_config.json").write_text(json.dumps({"r": rank}))
    return str(folder)


def value(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def test_cpu_command() -> None:
    plan = command("model", None, 8001, "127.0.0.1", ["--seed", "1"], cpu=True)
    assert (value(plan.argv, "--model"), value(plan.argv, "--block-size")) == ("model", "32")
    assert plan.argv[-2:] == ["--seed", "1"]
    assert "--enable-lora" not in plan.argv
    assert "VLLM_CPU_OMP_THREADS_BIND" in plan.env


def test_gpu_command_has_no_cpu_settings() -> None:
    plan = command("model", cpu=False)
    assert "--block-size" not in plan.argv
    assert "VLLM_CPU_OMP_THREADS_BIND" not in plan.env


def test_users_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0-3")
    assert "VLLM_CPU_OMP_THREADS_BIND" not in command("model", cpu=True).env


@pytest.mark.parametrize(("rank", "bound"), [(8, "8"), (24, "32"), (256, "256")])
def test_adapter_is_served_by_name(tmp_path: Path, rank: int, bound: str) -> None:
    folder = adapter(tmp_path, rank)
    argv = command("model", folder, cpu=True).argv
    assert value(argv, "--lora-modules") == f"ooospec={folder}"
    assert value(argv, "--max-lora-rank") == bound


def test_folder_without_adapter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="no LoRA adapter"):
        command("model", str(tmp_path), cpu=True)


def test_rank_beyond_vllms_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="rank 300"):
        command("model", adapter(tmp_path, 300), cpu=True)


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "merged", lambda base, adapter, cache: cache / "whole")


@pytest.mark.usefixtures("merges")
@pytest.mark.parametrize(
    ("extra", "names"),
    [
        ([], ["ooospec"]),
        (["--served-model-name", "small", "--seed", "1"], ["ooospec", "small"]),
        (["--served_model_name=small"], ["ooospec", "small"]),
        (["--served-model-name", "a", "ooospec", "--seed", "1"], ["ooospec", "a"]),
    ],
)
def test_on_a_cpu_the_merged_model_answers_to_all_names(tmp_path: Path, extra: list[str], names: list[str]) -> None:
    argv = plan_sidecar("model", adapter(tmp_path, 8), Path("/cache"), extra=extra, cpu=True).argv
    assert value(argv, "--model") == "/cache/whole"
    assert argv[-len(names) - 1 :] == ["--served-model-name", *names]
    assert "--enable-lora" not in argv


@pytest.mark.usefixtures("merges")
def test_a_gpu_serves_the_adapter_beside_its_base(tmp_path: Path) -> None:
    folder = adapter(tmp_path, 8)
    assert plan_sidecar("model", folder, tmp_path, cpu=False) == command("model", folder, cpu=False)
    assert plan_sidecar("model", None, tmp_path, cpu=True) == command("model", cpu=True)


def test_what_cannot_be_merged_is_served_all_the_same(tmp_path: Path) -> None:
    folder = adapter(tmp_path, 8)
    plan = plan_sidecar(str(tmp_path / "no model"), folder, tmp_path, cpu=True)
    assert plan.argv == command(str(tmp_path / "no model"), folder, cpu=True).argv
    (note,) = plan.notes
    assert "could not be merged" in note
    assert "no weights in safetensors" in note
