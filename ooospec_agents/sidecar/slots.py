"""A sidecar's answer for a slot, weighed with what the conversation and the schema say without any model.

Both know something that the other does not: of a slot's values, the sidecar's and those that the lexical fit found, one
is right, or none is. A conditional logit of a few features says with what probability (`slot_weights.json`, fitted by
`ooospec_agents.training.joining` to answers of the shipped adapter for functions that no evaluation set knows).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from ooospec_agents.drafting.sources.span_fit import LEAST, Likely
from ooospec_agents.drafting.sources.wanted import CLOSED, NESTED, NUMERIC
from ooospec_agents.hint import SlotHint
from ooospec_agents.strict_json import same

SUREST = 0.999
"""A confidence is taken for no more, and for no less than what is left of it."""
FEATURES = (
    "lexical",
    "lexical none",
    "said",
    "said, sure",
    "said, closed",
    "said, numeric",
    "said, nested",
    "said, text",
    "said alone",
    "absent",
    "absent, sure",
)
"""Logarithms of the lexical probabilities; what the sidecar said, how sure it was, and whether it is alone with it."""


def rows(said: SlotHint | None, likely: Likely, kind: str) -> Iterator[tuple[Any, dict[str, float]]]:
    """The values that a slot may have, each with its features, and at last None with those of there being none of them.

    Args:
        said: The sidecar's answer; None where it could not be read.
        likely: The lexical fit's.
        kind: The slot's class (`Wanted.kind`).
    """
    value = None if said is None or said.absent else said.value
    alone = value is not None
    for option in likely.options.values():
        features = {"lexical": math.log(max(option.probability, LEAST))}
        if said is not None and value is not None and same(option.value, value):
            alone = False
            features |= _said(said, kind)
        yield option.value, features
    if said is not None and alone:
        yield value, {"lexical": math.log(LEAST), "said alone": 1.0, **_said(said, kind)}
    nothing = {"lexical none": math.log(max(likely.none, LEAST))}
    if said is not None and value is None:
        nothing |= {"absent": 1.0, "absent, sure": _odds(said.confidence)}
    yield None, nothing


def weighed_slot(said: SlotHint | None, likely: Likely, kind: str) -> SlotHint | None:
    """The likeliest value, or that there is none; None where nothing is known of the slot."""
    found = list(rows(said, likely, kind))
    scores = [sum(WEIGHTS[name] * amount for name, amount in features.items()) for _, features in found]
    top = max(scores)
    parts = [math.exp(score - top) for score in scores]
    best = max(range(len(parts) - 1), key=parts.__getitem__, default=-1)
    nothing = said is not None and (said.absent or said.value is None)
    if said is not None and nothing and (best < 0 or parts[best] < parts[-1]):
        return said.model_copy(update={"confidence": parts[-1] / sum(parts)})
    return SlotHint(value=found[best][0], confidence=parts[best] / sum(parts)) if best >= 0 else None


def _said(said: SlotHint, kind: str) -> dict[str, float]:
    classes = {"closed": CLOSED, "numeric": NUMERIC, "nested": NESTED}
    group = next((name for name, kinds in classes.items() if kind in kinds), "text")
    return {"said": 1.0, "said, sure": _odds(said.confidence), f"said, {group}": 1.0}


def _odds(confidence: float) -> float:
    kept = min(max(confidence, 1 - SUREST), SUREST)
    return math.log(kept / (1 - kept))


def _weights() -> Mapping[str, float]:
    text = (resources.files(__package__) / "slot_weights.json").read_text(encoding="utf-8")
    weights = json.loads(text)["weights"]
    return {name: float(weights[name]) for name in FEATURES}


WEIGHTS = _weights()
