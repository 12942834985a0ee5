"""Requests to measure with: JSON Lines with `id, messages, tools, gold` in OpenAI's form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any


class DataError(ValueError):
    """A data file that cannot be read. The message says which line and why."""


@dataclass(frozen=True)
class Item:
    """One request of a data set.

    Attributes:
        id: Its id, unique in its file.
        dataset: Stem of the file that it stands in.
        messages: OpenAI chat messages.
        tools: OpenAI tools (Chat form).
        gold: The data's own reference calls, `{"name", "arguments"}` each. Not what a target must answer.
    """

    id: str
    dataset: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    gold: list[dict[str, Any]] = field(default_factory=list)


def load(path: Path, limit: int | None = None, *, shortest: bool = False) -> list[Item]:
    """Read a JSONL file, or every `*.jsonl` of a folder in turns (one item of each, then the next of each).

    Args:
        path: File or folder.
        limit: Most items returned; None: all.
        shortest: Take each file's items by the length of tools and messages, the shortest first: a slow machine
            spends most of its time on prompts.

    Raises:
        DataError: Nothing is there, or a line is not such a request.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        msg = f"No JSONL data at {str(path)!r}: pass a .jsonl file or a folder that holds some."
        raise DataError(msg)
    read = [sorted(_read(file), key=prompt_length) if shortest else _read(file) for file in files]
    turns = zip_longest(*read)
    items = [item for turn in turns for item in turn if item is not None]
    return items if limit is None else items[:limit]


def prompt_length(item: Item) -> int:
    """Characters of a request's tools and messages as JSON."""
    return len(json.dumps([item.tools, item.messages]))


def take(items: Sequence[Item], limit: int | None) -> list[Item]:
    """The first `limit` requests of each data set, in turns; None: all."""
    counts: Counter[str] = Counter()
    taken = []
    for item in items:
        counts[item.dataset] += 1
        if limit is None or counts[item.dataset] <= limit:
            taken.append(item)
    by_set = [[item for item in taken if item.dataset == name] for name in counts]
    return [item for turn in zip_longest(*by_set) for item in turn if item is not None]


def load_named(name: str, folder: Path | None = None) -> list[Item]:
    """The requests of a data set by name or place.

    Args:
        name: A `.jsonl` file or a folder of such; "own", which comes with this package; "bfcl" or "bfcl:CATEGORY"; or
            the stem of a file in `folder`.
        folder: Where sets that do not come with the package lie as `NAME.jsonl`.

    Raises:
        DataError: There is no such set, or it cannot be read.
    """
    from ooospec_agents.bench.bfcl import load_bfcl
    from ooospec_agents.bench.own import NAME, load_own

    if name == NAME:
        return load_own()
    if (path := Path(name).expanduser()).exists():
        return load(path)
    if folder is not None and (file := folder / f"{name}.jsonl").is_file():
        return load(file)
    head, _, category = name.partition(":")
    if head == "bfcl":
        return load_bfcl(category)
    msg = (
        f"No data set {name!r}: pass a .jsonl file or a folder that holds some, {NAME!r}, 'bfcl', 'bfcl:CATEGORY', or "
        "with --data-folder the stem of a file there."
    )
    raise DataError(msg)


def _read(file: Path) -> list[Item]:
    items = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            items.append(
                Item(str(row["id"]), file.stem, row["messages"], row.get("tools") or [], row.get("gold") or [])
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            msg = f"{file.name}, line {number}: not a request with id, messages and tools ({error})"
            raise DataError(msg) from None
    return items
