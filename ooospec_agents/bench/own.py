"""The set of requests that was written for this package: six domains, thirty tools, four languages.

One file a domain in `requests_own/`, one request a line; `tools` names the domains whose tools are bound, which
stand in `tools.json`. Dates and numbers stand in the requests, so that each has one right answer, its `gold`: one
call, several at once, or none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ooospec_agents.bench.data import Item

FOLDER = Path(__file__).parent / "requests_own"
NAME = "own"


def load_own() -> list[Item]:
    """All requests, the domains in turns."""
    tools = json.loads((FOLDER / "tools.json").read_text(encoding="utf-8"))
    columns = [[_item(row, tools) for row in rows(domain)] for domain in tools]
    return [item for turn in zip_longest(*columns) for item in turn if item is not None]


def rows(domain: str) -> Iterator[dict[str, Any]]:
    """The rows of one domain as they are written, with the language of each."""
    for line in (FOLDER / f"{domain}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _item(row: dict[str, Any], tools: dict[str, list[dict[str, Any]]]) -> Item:
    bound = [tool for domain in row["tools"] for tool in tools[domain]]
    return Item(row["id"], NAME, row["messages"], bound, row["gold"])
