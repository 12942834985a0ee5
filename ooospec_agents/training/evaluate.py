"""The report card's command: `ooospec evaluate`."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from ooospec_agents.catalog import Catalog
from ooospec_agents.sidecar.backend import SidecarBackend
from ooospec_agents.sidecar.wave import run_wave
from ooospec_agents.training.card import Outcome, percent, report_card
from ooospec_agents.training.traces import DataError, Request, read_requests

FIGURES = ("function_accuracy", "function_accuracy_multi", "slot_exact", "null_exact", "leading", "call_exact")
"""What the table shows, in this order."""


def requests_of(path: Path, limit: int | None = None) -> list[Request]:
    """Requests of a file, or of all `*.jsonl` of a folder; with a limit, a fixed sample of each file's share.

    Raises:
        DataError: There are none.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    requests = [one for file in files for one in read_requests(file) if one.calls]
    if not requests:
        msg = f"{str(path)!r} holds no request with an answer: name a JSON Lines file or a folder of them."
        raise DataError(msg)
    if limit is None or limit >= len(requests):
        return requests
    return random.Random(0).sample(requests, limit)


async def run_waves(
    backend: SidecarBackend,
    requests: Sequence[Request],
    console: Console,
    *,
    required: bool = True,
    by_itself: bool = False,
) -> list[Outcome]:
    """One wave for each request, one after the other, every slot asked for.

    Args:
        backend: The sidecar.
        requests: What is asked.
        console: Where to show progress.
        required: Whether the target had to call something: then "no call" is no answer.
        by_itself: See `run_wave`.
    """
    outcomes = []
    for request in track(requests, "waves", console=console):
        catalog = Catalog.from_tools(list(request.tools))
        began = time.perf_counter()
        hint = await run_wave(backend, catalog, request.messages, no_call_allowed=not required, by_itself=by_itself)
        outcomes.append(Outcome(request, hint, (time.perf_counter() - began) * 1000))
    return outcomes


def evaluate(
    backend: SidecarBackend, requests: Sequence[Request], console: Console, *, required: bool = True
) -> dict[str, Any]:
    """The report card of a sidecar on these requests."""
    return report_card(asyncio.run(run_waves(backend, requests, console, required=required)))


def show(card: dict[str, Any], console: Console, name: str = "sidecar") -> None:
    """The card as a table, and its worst errors."""
    table = Table("", *FIGURES)
    table.add_row(name, *(percent(card[name]) for name in FIGURES))
    for source, figures in card["by_source"].items():
        table.add_row(f"  {source}", *(percent(figures[name]) for name in FIGURES))
    for baseline, figures in card["baselines"].items():
        table.add_row(baseline.replace("_", "-"), *(percent(figures[key]) for key in FIGURES))
    console.print(table)
    sure = card["calibration"]
    console.print(
        f"Valued slots said at 0.9 or more: {percent(sure['sure_share'])}, right {percent(sure['sure_right'])}; "
        f"a {'wave' if name == 'sidecar' else 'request'} took {card['wave_ms_p50'] or 0:.0f} ms (median)."
    )
    console.print("Worst errors, the surest first:")
    for line in card["worst_errors"]:
        console.print(f"  {line}", markup=False, highlight=False)


def write(card: dict[str, Any], path: Path) -> None:
    """The card as JSON."""
    path.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
