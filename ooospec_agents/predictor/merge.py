"""Two hints of one request become one: function and slots, each from the one that is more certain of it."""

from __future__ import annotations

from collections.abc import Iterable

from ooospec_agents.hint import MAX_CALLS, CallHint, Hint, SlotHint


def merge(hints: Iterable[Hint]) -> Hint | None:
    """One hint of several; of equally certain ones the first counts. None of none."""
    merged: Hint | None = None
    for hint in hints:
        merged = hint if merged is None else _both(merged, hint)
    return merged


def _both(one: Hint, other: Hint) -> Hint:
    leading, following = (other, one) if _sure(other) > _sure(one) else (one, other)
    said = {call.name: call for call in reversed((*following.calls, *following.alternatives))}
    calls = tuple(_call(call, said.get(call.name)) for call in leading.calls)
    named = {call.name for call in calls}
    others: dict[str, CallHint] = {}
    for call in (*leading.alternatives, *following.calls, *following.alternatives):
        if call.name not in named and call.name not in others:
            others[call.name] = _call(call, said.get(call.name))
    alternatives = sorted(others.values(), key=lambda call: -call.confidence)[:MAX_CALLS]
    source = f"{one.source}+{other.source}"[:32]
    return Hint(calls=calls, alternatives=tuple(alternatives), no_call=leading.no_call, source=source)


def _sure(hint: Hint) -> float:
    """How sure a hint is of its first call, or of none."""
    return hint.calls[0].confidence if hint.calls else hint.no_call


def _call(call: CallHint, other: CallHint | None) -> CallHint:
    if other is None or other is call:
        return call
    slots: dict[str, SlotHint] = dict(call.slots)
    for name, slot in other.slots.items():
        if name not in slots or slot.confidence > slots[name].confidence:
            slots[name] = slot
    # What neither names may be left out only where both say so.
    return call.model_copy(update={"slots": slots, "complete": call.complete and other.complete})
