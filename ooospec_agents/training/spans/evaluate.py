"""The span predictor's report card: the sidecar's figures, timed on one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console
from rich.progress import track

from ooospec_agents.catalog import Catalog
from ooospec_agents.predictor.predictor import SpanPredictor
from ooospec_agents.training.card import Outcome, report_card
from ooospec_agents.training.traces import Request


def run(
    predictor: SpanPredictor, requests: Sequence[Request], console: Console, *, required: bool = True
) -> tuple[list[Outcome], list[float]]:
    """Each request's hint, timed with its catalog known; and milliseconds with a catalog never seen.

    Args:
        predictor: The predictor.
        requests: What is asked.
        console: Where to show progress.
        required: Whether the target had to call something: then "no call" is no answer.
    """
    outcomes, cold = [], []
    for request in track(requests, "requests", console=console):
        catalog = Catalog.from_tools(list(request.tools))
        took, hint = 0.0, None
        for seen in (False, True):
            began = time.perf_counter()
            hint = predictor.predict(catalog, request.messages, no_call_allowed=not required)
            took = (time.perf_counter() - began) * 1000
            if not seen:
                cold.append(took)
        outcomes.append(Outcome(request, hint, took))
    return outcomes, cold


def evaluate(
    predictor: SpanPredictor, requests: Sequence[Request], console: Console, *, required: bool = True
) -> dict[str, Any]:
    """The report card on one thread, as the predictor runs in a server."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        outcomes, cold = run(predictor, requests, console, required=required)
    finally:
        torch.set_num_threads(threads)
    card = report_card(outcomes)
    card["cold_ms_p50"] = statistics.median(cold) if cold else None
    return card
