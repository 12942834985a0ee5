"""Who imports whom: each layer only those below it, and the ground floors nothing heavy."""

import ast
import sys
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = (
    {
        "_version",
        "catalog",
        "json_schema",
        "hint",
        "privacy",
        "processor",
        "http_library",
        "runtime",
        "process",
        "strict_json",
        "files",
        "chat_request",
    },
    {"formats", "drafting"},
    {"predictor", "sidecar", "vllm_plugin"},
    {"target_status", "client", "targets", "packaged_weights", "gguf_convert", "weights", "bounds"},
    {"bench", "testing", "training", "up"},
    {"openai_ooospec", "langchain_ooospec", "langgraph_ooospec", "doctor", "cli", "__init__"},
)
"""From the ground up, as docs/architecture.md tells it."""
LIGHT = {
    "catalog": set[str](),
    "json_schema": set[str](),
    "formats": set[str](),
    "drafting": set[str](),
    "hint": {"pydantic", "pydantic_core"},
}
"""Whose imports are limited, and the libraries that they may have."""
MEASURES_CLIENTS = {"bench"}
"""What runs agents, to measure them."""


def unit(module: str) -> str:
    """The file or folder of ours that a module belongs to; "" for what is not ours."""
    parts = module.split(".")
    if parts[0] in LAYERS[-1]:
        return parts[0]
    if parts[0] != "ooospec_agents":
        return ""
    return parts[1] if len(parts) > 1 else "__init__"


def imports(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "ooospec_agents":
            yield from (f"ooospec_agents.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def level(name: str) -> int:
    return next(index for index, layer in enumerate(LAYERS) if name in layer)


def faults(name: str, text: str) -> list[str]:
    """The imports of a file of `name` that it must not have."""
    found = []
    for module in imports(text):
        other = unit(module)
        if other:
            upward = level(other) > level(name)
            if upward and not (name in MEASURES_CLIENTS and other in LAYERS[-1]):
                found.append(module)
        elif name in LIGHT and module.partition(".")[0] not in {*sys.stdlib_module_names, *LIGHT[name]}:
            found.append(module)
    return found


def ours() -> Iterator[tuple[str, Path]]:
    for file in (ROOT / "ooospec_agents").rglob("*.py"):
        yield file.relative_to(ROOT / "ooospec_agents").parts[0].removesuffix(".py"), file
    for file in (ROOT / "integrations").rglob("*.py"):
        yield file.relative_to(ROOT / "integrations").parts[0], file


def test_every_file_has_a_layer() -> None:
    known = set[str]().union(*LAYERS)
    assert {name for name, _ in ours()} == known


def test_nothing_imports_from_above() -> None:
    found = {file.name: wrong for name, file in ours() if (wrong := faults(name, file.read_text("utf-8")))}
    assert found == {}


def in_order(files: Iterable[tuple[str, str]]) -> list[str]:
    """The files and folders, each after those that it imports.

    Raises:
        CycleError: Some import each other in a circle.
    """
    graph: dict[str, set[str]] = {}
    for name, text in files:
        graph.setdefault(name, set()).update({unit(module) for module in imports(text)} - {"", name})
    return list(TopologicalSorter(graph).static_order())


def test_there_is_no_circle() -> None:
    order = in_order((name, file.read_text("utf-8")) for name, file in ours())
    assert order.index("hint") < order.index("drafting") < order.index("vllm_plugin")


def test_a_circle_is_seen() -> None:
    there, back = "from ooospec_agents.vllm_plugin import launch", "from ooospec_agents.sidecar import wave"
    with pytest.raises(CycleError):
        in_order([("sidecar", there), ("vllm_plugin", back)])


def test_an_import_from_above_or_of_something_heavy_is_seen() -> None:
    text = "import json\nimport httpx\nfrom ooospec_agents.hint import Hint\nfrom ooospec_agents.sidecar import wave\nimport torch"
    assert faults("drafting", text) == ["httpx", "ooospec_agents.sidecar", "torch"]
    assert faults("vllm_plugin", text) == []
    assert faults("sidecar", "from ooospec_agents import client") == ["ooospec_agents.client"]
