"""Finding a trained predictor, and saying what is missing."""

import importlib.util
from pathlib import Path

import pytest

from ooospec_agents.predictor.folder import FILES, PredictorError, find


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).touch()
    return tmp_path


def test_a_whole_folder_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert find(folder) == folder


def test_a_folder_without_weights_says_how_to_get_some(folder: Path) -> None:
    (folder / FILES[0]).unlink()
    with pytest.raises(PredictorError, match=r"span\.safetensors missing.*ooospec train --predictor span"):
        find(folder)


def test_without_torch_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(PredictorError, match="needs torch: install"):
        find(folder)
