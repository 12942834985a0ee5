"""Is a run repeated? Two result files of the same command: every ratio must fall into the other's interval."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table


def pairs(
    first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]
) -> list[tuple[Mapping[str, Any], Mapping[str, Any], bool]]:
    """Rows of the same data and method, and whether each ratio lies in the other's interval."""
    others = {_key(row): row for row in second}
    found = []
    for row in first:
        other = others.get(_key(row))
        if other is not None:
            found.append((row, other, _within(row, other) and _within(other, row)))
    return found


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("target", "dataset", "method", "hints", "setting"))


def _within(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(other["speedup_low"] - 1e-9 <= row["speedup"] <= other["speedup_high"] + 1e-9)


def main(
    first: Annotated[Path, typer.Argument(help="Result JSON.")],
    second: Annotated[Path, typer.Argument(help="Result JSON of the same command, run again.")],
) -> None:
    """Compare two runs; exit 1 where a ratio lies outside the other's interval."""
    rows = [json.loads(path.read_text(encoding="utf-8"))["rows"] for path in (first, second)]
    compared = pairs(*rows)
    table = Table(title="Run twice", title_justify="left")
    for name in ("data", "method", "first", "second", "within"):
        table.add_column(name)
    for row, other, within in compared:
        said = [f"{one['speedup']:.2f} [{one['speedup_low']:.2f}, {one['speedup_high']:.2f}]" for one in (row, other)]
        method = f"{row['method']} {row.get('hints') or ''}".strip()
        table.add_row(str(row["dataset"]), method, *said, "yes" if within else "NO")
    Console().print(table)
    if not compared or not all(within for *_, within in compared):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
