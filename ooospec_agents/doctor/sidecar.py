"""The sidecar and its adapter: whether it completes prompts, whether it was trained for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from ooospec_agents.doctor.findings import Finding, Level
from ooospec_agents.process import LaunchError
from ooospec_agents.sidecar.backend import SidecarError
from ooospec_agents.sidecar.client import CompletionsClient
from ooospec_agents.sidecar.launch import command

_SERVE = "ooospec serve sidecar --model MODEL"


def look_at_sidecar(
    url: str, model: str | None = None, api_key: str | None = None, *, ours: bool = True
) -> list[Finding]:
    """Ask a sidecar for one short completion.

    Args:
        url: Its address.
        model: The model or adapter to ask for.
        api_key: Its key.
        ours: Whether this machine is the one that asks it; the target's own may be out of reach from here.
    """
    try:
        trained = asyncio.run(_complete(url, model, api_key))
    except ValueError as problem:
        return [Finding("sidecar", "problem", str(problem), "ooospec doctor --sidecar http://HOST:PORT")]
    except SidecarError as problem:
        level: Level = "problem" if ours or problem.kind != "down" else "warning"
        return [Finding("sidecar", level, str(problem), _mend(problem))]
    found = [Finding("sidecar", "ok", f"{url!r} completes prompts with probabilities")]
    if not trained:
        text = "the model has no adapter of ours: it is prompted as it is, and its hints are poor"
        found.append(Finding("adapter", "warning", text, f"{_SERVE} --adapter FOLDER"))
    return found


def look_at_adapter(folder: Path) -> Iterator[Finding]:
    """Whether a folder holds an adapter that vLLM can serve."""
    try:
        command("MODEL", str(folder))
    except LaunchError as problem:
        yield Finding("adapter", "problem", str(problem), "ooospec train --help")
        return
    if not any(folder.glob("adapter_model.*")):
        text = f"{str(folder)!r} has no weights ('adapter_model.safetensors'): its training did not end"
        yield Finding("adapter", "problem", text, "ooospec train --help")
        return
    base = json.loads((folder / "adapter_config.json").read_text("utf-8")).get("base_model_name_or_path")
    yield Finding("adapter", "ok", f"{str(folder)!r}, made for {base!r}")


async def _complete(url: str, model: str | None, api_key: str | None) -> bool:
    client = CompletionsClient(url, model, api_key)
    try:
        await client.complete(["Question: Which tool is called next?\nAnswer:"], 2)
        return await client.trained()
    finally:
        await client.aclose()


def _mend(problem: SidecarError) -> str:
    match problem.kind:
        case "key":
            return "ooospec doctor --sidecar-api-key KEY"
        case "model":
            return f"{_SERVE} --adapter FOLDER"
        case _:
            return _SERVE
