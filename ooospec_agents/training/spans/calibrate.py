"""Calibrates a trained span predictor on held-out requests, and keeps the result in its folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ooospec_agents.catalog import Catalog
from ooospec_agents.predictor import model
from ooospec_agents.predictor.calibration import fit
from ooospec_agents.predictor.decode import Found, mix
from ooospec_agents.predictor.pieces import Pieces
from ooospec_agents.predictor.predictor import SpanPredictor
from ooospec_agents.strict_json import same
from ooospec_agents.training.traces import Request

LEXICAL_WEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)
GUESS_WEIGHTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)
TEMPERATURES = (0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)


def calibrate(folder: Path, requests: Sequence[Request]) -> model.Calibration:
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
    predictor = SpanPredictor(encoder, pieces, best)
    slots = [slot for one in requests if one.calls for slot in _slots(predictor, one)]
    weights = {weight: sum(_right(slot, weight) for slot in slots if not slot.absent) for weight in GUESS_WEIGHTS}
    guesses = max(weights, key=lambda weight: weights[weight])
    values = [(mix(one.pointed, one.guessed, guesses).probability, _right(one, guesses)) for one in slots]
    absences = [(one.leaving, one.absent) for one in slots if not one.required]
    best = replace(
        best,
        guesses=guesses,
        value=fit([raw for raw, _ in values], [right for _, right in values]),
        absent=fit([raw for raw, _ in absences], [right for _, right in absences]),
    )
    model.save_calibration(best, folder)
    return best


@dataclass(frozen=True)
class Judged:
    """One slot of a called function: what was said of it, and what is right."""

    leaving: float
    pointed: list[Found]
    guessed: list[Found]
    absent: bool
    required: bool
    right: Any


def _slots(predictor: SpanPredictor, request: Request) -> Iterator[Judged]:
    call = request.calls[0]
    for slot, leaving, pointed, guessed in predictor.slot_candidates(
        Catalog.from_tools(list(request.tools)), request.messages, call.name
    ):
        right = call.arguments.get(slot.name)
        yield Judged(leaving, pointed, guessed, right is None, slot.required, right)


def _right(slot: Judged, weight: float) -> bool:
    return not slot.absent and same(mix(slot.pointed, slot.guessed, weight).value, slot.right)


def _surprise(said: Sequence[tuple[str, float, float]], name: str, lexical: float, temperature: float) -> float:
    """Negative logarithm of the right function's probability."""
    scores = {function: (logit + lexical * shared) / temperature for function, logit, shared in said}
    if name not in scores:
        return 0.0
    top = max(scores.values())
    return math.log(sum(math.exp(score - top) for score in scores.values())) - (scores[name] - top)
