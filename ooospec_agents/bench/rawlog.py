"""Raw results as JSON lines, written as they come, so that a stopped run goes on where it stopped."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ooospec_agents.bench.data import Item


class OtherRun(ValueError):
    """A raw file that belongs to a run with other options."""


class RawLog:
    """An append-only JSONL file: one header line with the run's options, then one line per result.

    Args:
        path: The file; made if missing.
        options: What must be equal for a run to be the same run.

    Raises:
        OtherRun: The file is of a run with other options.
    """

    def __init__(self, path: Path, options: Mapping[str, Any]) -> None:
        self.path = path
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        head = json.loads(json.dumps({"options": dict(options)}))
        lines = list(_complete_lines(path))
        if lines and lines[0] != head:
            msg = (
                f"{str(path)!r} holds a run with other options {lines[0].get('options')!r}: "
                "move it away or resume that run."
            )
            raise OtherRun(msg)
        self.rows: list[dict[str, Any]] = lines[1:]
        # A half-written last line of a killed run is dropped by writing the whole lines anew.
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in [head, *self.rows])

    def add(self, row: dict[str, Any]) -> None:
        """Append one result and write it through. Safe across threads."""
        with self._lock:
            self.rows.append(row)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def keep_items(self, items: Iterable[Item]) -> None:
        """Keep the requests themselves, once each, so that the file can be read without its data sets."""
        for item in items:
            if self.find(method="item", dataset=item.dataset, item=item.id) is None:
                said = {"messages": item.messages, "tools": item.tools, "gold": item.gold}
                self.add({"item": item.id, "dataset": item.dataset, "method": "item", **said})

    def find(self, **fields: Any) -> dict[str, Any] | None:
        """The first row with these fields, or None."""
        return next((row for row in self.rows if all(row.get(k) == v for k, v in fields.items())), None)


def _complete_lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        if line:
            yield json.loads(line)
