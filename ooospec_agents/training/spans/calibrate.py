"""Calibrates a trained span predictor on held-out requests, and keeps the result in its folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ooospec_agents.catalog import Catalog
from ooospec_agents.hint import Hint
from ooospec_agents.predictor import model
from ooospec_agents.predictor.calibration import fit
from ooospec_agents.predictor.pieces import Pieces
from ooospec_agents.predictor.predictor import SpanPredictor
from ooospec_agents.training.card import same
from ooospec_agents.training.spans.evaluate import run
from ooospec_agents.training.traces import Request

LEXICAL_WEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.75, 1.0)
TEMPERATURES = (0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)


def calibrate(folder: Path, requests: Sequence[Request], console: Console) -> model.Calibration:
    """Choose the function's weights and fit the slots' curves, on requests with the target's calls."""
    encoder, pieces = model.load(folder), Pieces(folder)
    best, least = model.Calibration(), math.inf
    several = [one for one in requests if one.calls and len(Catalog.from_tools(list(one.tools)).functions) > 1]
    logits = SpanPredictor(encoder, pieces, best).choice_logits
    scored = [(logits(Catalog.from_tools(list(one.tools)), one.messages), one.calls[0].name) for one in several]
    for lexical in LEXICAL_WEIGHTS:
        for temperature in TEMPERATURES:
            loss = sum(_surprise(said, name, lexical, temperature) for said, name in scored)
            if loss < least:
                best, least = model.Calibration(temperature=temperature, lexical=lexical), loss
    outcomes, _ = run(SpanPredictor(encoder, pieces, best), requests, console)
    answers = [(one.request, one.hint) for one in outcomes if one.hint is not None and one.request.calls]
    curves = []
    for absent in (False, True):
        judged = [pair for request, hint in answers for pair in _judged(request, hint, absent=absent)]
        curves.append(fit([raw for raw, _ in judged], [right for _, right in judged]))
    best = replace(best, value=curves[0], absent=curves[1])
    model.save_calibration(best, folder)
    return best


def _surprise(said: Sequence[tuple[str, float, float]], name: str, lexical: float, temperature: float) -> float:
    """Negative logarithm of the right function's probability."""
    scores = {function: (logit + lexical * shared) / temperature for function, logit, shared in said}
    if name not in scores:
        return 0.0
    top = max(scores.values())
    return math.log(sum(math.exp(score - top) for score in scores.values())) - (scores[name] - top)


def _judged(request: Request, hint: Hint, *, absent: bool) -> Iterator[tuple[float, bool]]:
    """Confidences of the called function's values (or absences), each with whether it was right."""
    call = request.calls[0]
    said = next((one for one in (*hint.calls, *hint.alternatives) if one.name == call.name), None)
    for name, slot in (said.slots if said else {}).items():
        if slot.absent is absent:
            right = name not in call.arguments if absent else same(slot.value, call.arguments.get(name, _NOTHING))
            yield slot.confidence, right


_NOTHING = object()
