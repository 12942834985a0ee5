"""The lexical guesser as a predictor: what shared words, typed spans and the schema say, as a hint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.sources.functions import rank_functions
from ooospec_agents.drafting.sources.lexical import LexicalValues
from ooospec_agents.hint import CallHint, Hint, SlotHint

MAX_CALLS = 16
"""Functions for which the hint brings guesses."""


def lexical_hint(catalog: Catalog, messages: Sequence[Any]) -> Hint | None:
    """What the target's drafter would guess without any hint; None where no function is bound."""
    if not catalog.functions:
        return None
    text = conversation_text(messages)
    values = LexicalValues(text)
    calls = []
    for guess in rank_functions(catalog, text, values.fit)[:MAX_CALLS]:
        function = catalog.function(guess.value)
        slots = {slot.name: _slot(values, slot, function) for slot in function.slots} if function else {}
        calls.append(CallHint(name=guess.value, confidence=min(guess.confidence, 1.0), slots=slots))
    return Hint(calls=tuple(calls[:1]), alternatives=tuple(calls[1:]), source="lexical")


def _slot(values: LexicalValues, slot: Slot, function: Function) -> SlotHint:
    best = next(iter(values.guesses(slot, function)), None)
    if best is None or (not slot.required and values.nothing(slot, function) > best.confidence):
        return SlotHint(absent=True, confidence=0.4)
    return SlotHint(value=best.value, confidence=min(best.confidence, 1.0))
