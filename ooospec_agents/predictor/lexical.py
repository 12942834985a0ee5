"""The lexical guesser as a predictor: what shared words, typed spans and the schema say, as a hint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ooospec_agents.catalog import Catalog, Slot
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.sources.functions import rank_functions
from ooospec_agents.drafting.sources.lexical import LexicalValues
from ooospec_agents.drafting.sources.schema import schema_guesses
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
    for guess in rank_functions(catalog, text)[:MAX_CALLS]:
        function = catalog.function(guess.value)
        slots = {slot.name: _slot(values, slot) for slot in function.slots} if function else {}
        calls.append(CallHint(name=guess.value, confidence=min(guess.confidence, 1.0), slots=slots))
    return Hint(calls=tuple(calls[:1]), alternatives=tuple(calls[1:]), source="lexical")


def _slot(values: LexicalValues, slot: Slot) -> SlotHint:
    found = [*values.guesses(slot), *schema_guesses(slot)]
    best = max(found, key=lambda guess: guess.confidence, default=None)
    if best is None:
        return SlotHint(absent=True, confidence=0.4)
    return SlotHint(value=best.value, confidence=min(best.confidence, 1.0))
