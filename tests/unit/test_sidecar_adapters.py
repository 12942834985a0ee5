"""Which adapter a sidecar is served with."""

from pathlib import Path

import pytest

from ooospec_agents.sidecar import adapters
from ooospec_agents.sidecar.adapters import adapter_for


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "small-1b-instruct"
    folder.mkdir()
    (folder / adapters.WEIGHTS).write_bytes(b"")
    (tmp_path / "half-done").mkdir()
    monkeypatch.setattr(adapters, "FOLDER", tmp_path)
    return str(folder)


@pytest.mark.parametrize("model", ["Small-1B-Instruct", "Org/Small-1B-Instruct", "/models/small-1b-instruct/"])
def test_a_model_gets_its_own_by_default(shipped: str, model: str) -> None:
    assert adapter_for(model) == shipped


@pytest.mark.parametrize("model", ["Org/Small-1B", "Org/Half-Done", "Small-1B-Instruct-GGUF", ".", "/"])
def test_another_model_gets_none(shipped: str, model: str) -> None:
    assert adapter_for(model) is None


def test_the_users_choice_wins(shipped: str) -> None:
    assert adapter_for("Small-1B-Instruct", "my/adapter") == "my/adapter"
    assert adapter_for("Small-1B-Instruct", "none") is None
