"""Container files: what they start exists, and what they are built from is what is installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ooospec_agents.cli import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def services() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    return found


@pytest.mark.parametrize("name", ["sidecar", "target"])
def test_what_compose_starts_exists(name: str) -> None:
    words = services()[name]["command"]
    assert words[:2] == ["serve", name]
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["serve", name, "--help"]).output
    vllms = {"--gpu-memory-utilization"}
    assert [word for word in words if word.startswith("--") and word not in shown and word not in vllms] == []


def test_the_target_calls_the_sidecar_by_its_name_and_key() -> None:
    found = services()
    words = found["target"]["command"]
    port = found["sidecar"]["expose"][0]
    assert words[words.index("--sidecar") + 1] == f"http://sidecar:{port}"
    key = found["target"]["environment"]["OOOSPEC_SIDECAR_API_KEY"]
    assert key == found["sidecar"]["environment"]["VLLM_API_KEY"]


def test_only_the_target_is_reached_from_outside_and_only_from_this_machine() -> None:
    found = services()
    assert "ports" not in found["sidecar"]
    assert found["target"]["ports"] == ["127.0.0.1:8000:8000"]


def test_the_gpu_image_is_a_vllm_that_is_known() -> None:
    text = (DEPLOY / "Dockerfile.gpu").read_text("utf-8")
    version = re.search(r"VLLM_VERSION=v(\d+)\.(\d+)", text)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    bounds = re.search(r"vllm>=(\d+)\.(\d+),<(\d+)\.(\d+)", " ".join(extras["vllm"]))
    assert version is not None
    assert bounds is not None
    low, high = [tuple(map(int, bounds.groups()[at : at + 2])) for at in (0, 2)]
    assert low <= tuple(map(int, version.groups())) < high
    assert "FROM vllm/vllm-openai:" in text


@pytest.mark.parametrize("name", ["Dockerfile.gpu", "Dockerfile.cpu"])
def test_images_run_the_command(name: str) -> None:
    assert 'ENTRYPOINT ["ooospec"]' in (DEPLOY / name).read_text("utf-8")
