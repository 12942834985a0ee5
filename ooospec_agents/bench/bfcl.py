"""Requests of the Berkeley Function Calling Leaderboard, read from the files of its own package `bfcl-eval`.

Only the single-turn categories, which are plain chat requests. Nothing of the package is imported or copied.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, files
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ooospec_agents.bench.data import DataError, Item

CATEGORIES = (
    "simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple",
    "live_simple", "live_multiple", "irrelevance",
)  # fmt: skip
TYPES = {
    "dict": "object", "hashmap": "object", "hashtable": "object", "object": "object",
    "list": "array", "array": "array", "arraylist": "array", "tuple": "array", "set": "array", "queue": "array",
    "int": "integer", "integer": "integer", "long": "integer", "short": "integer", "byte": "integer",
    "bigint": "integer", "float": "number", "double": "number", "number": "number", "bool": "boolean",
    "boolean": "boolean", "null": "null",
}  # fmt: skip
"""JSON Schema's types by BFCL's; what is not here is a string."""


def load_bfcl(category: str = "", folder: Path | None = None) -> list[Item]:
    """Requests of one category, or of all in turns.

    Args:
        category: One of `CATEGORIES`; "": all, as one data set.
        folder: Where the files `BFCL_v4_CATEGORY.json` lie; None: in the installed package.

    Raises:
        DataError: The files are not there, or there is no such category.
    """
    if category and category not in CATEGORIES:
        msg = f"BFCL has no category {category!r} of single requests: use one of {', '.join(CATEGORIES)}."
        raise DataError(msg)
    root = folder or _package()
    wanted = [category] if category else list(CATEGORIES)
    columns = [_category(root, name, f"bfcl_{category}" if category else "bfcl") for name in wanted]
    return [item for row in zip_longest(*columns) for item in row if item is not None]


def _package() -> Path:
    try:
        found = files("bfcl-eval") or []
    except PackageNotFoundError:
        found = []
    for file in found:
        if file.name.endswith("_simple_java.json") and file.parent.name == "data":
            return Path(str(file.locate())).parent
    msg = "Data set 'bfcl' needs the files of its package: `pip install --no-deps bfcl-eval`, or name their folder."
    raise DataError(msg)


def _category(root: Path, category: str, dataset: str) -> list[Item]:
    asked = _lines(root, category)
    answers = {row["id"]: row["ground_truth"] for row in _lines(root / "possible_answer", category, missing=True)}
    return [_item(row, dataset, answers.get(row["id"], [])) for row in asked]


def _lines(root: Path, category: str, *, missing: bool = False) -> list[dict[str, Any]]:
    found = sorted(root.glob(f"BFCL_v[0-9]_{category}.json"))
    if not found:
        if missing:
            return []
        msg = f"No file 'BFCL_v4_{category}.json' in {str(root)!r}."
        raise DataError(msg)
    text = found[-1].read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _item(row: Mapping[str, Any], dataset: str, truth: list[dict[str, Any]]) -> Item:
    tools = [
        {
            "type": "function",
            "function": {
                "name": _name(function["name"]),
                "description": function.get("description", ""),
                "parameters": _schema(function["parameters"]),
            },
        }
        for function in row["function"]
    ]
    gold = [
        {"name": _name(name), "arguments": {key: said[0] for key, said in arguments.items() if said and said[0] != ""}}
        for call in truth
        for name, arguments in call.items()
    ]
    return Item(f"bfcl_{row['id']}", dataset, list(row["question"][0]), tools, gold)


def _name(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with JSON Schema's own types, at every depth."""
    out: dict[str, Any] = {key: value for key, value in schema.items() if key not in ("type", "properties", "items")}
    if "type" in schema:
        out["type"] = TYPES.get(str(schema["type"]).lower(), "string")
    if isinstance(schema.get("properties"), Mapping):
        out["properties"] = {name: _schema(value) for name, value in schema["properties"].items()}
    if isinstance(schema.get("items"), Mapping):
        out["items"] = _schema(schema["items"])
    return out
