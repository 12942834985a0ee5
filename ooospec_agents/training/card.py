"""The report card: hints beside right answers, and what needs no model beside both."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ooospec_agents.catalog import Catalog, Slot
from ooospec_agents.hint import Hint, SlotHint
from ooospec_agents.predictor.lexical import lexical_hint
from ooospec_agents.strict_json import same
from ooospec_agents.training.traces import Call, Request

SURE = 0.9
"""A confidence from which a value counts as said for sure."""
WORST = 20
"""Errors shown."""


@dataclass(frozen=True)
class Outcome:
    """One request, what was expected of it, and how long that took in milliseconds."""

    request: Request
    hint: Hint | None
    wave_ms: float = 0.0


@dataclass(frozen=True)
class SlotOutcome:
    """One slot's answer beside the right one.

    Attributes:
        source: The request's data set.
        kind: The slot's type, "enum" where options are named.
        valued: Whether the right answer is a value.
        right: Whether the answer is exactly that.
        leading: Part of the right value's text that the answer's text starts with, from 0 to 1.
        confidence: What the answer said of itself; 0 without an answer.
        line: The answer in words, for the list of errors.
    """

    source: str
    kind: str
    valued: bool
    right: bool
    leading: float
    confidence: float
    line: str


def report_card(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The figures of a sidecar, JSON-able; a figure of nothing is None.

    Only requests with a known answer that calls a bound function count, by their first call.
    """
    counted = [one for one in outcomes if one.request.calls and _called(one.request) is not None]
    slots = [slot for one in counted for slot in _slot_outcomes(one)]
    card = _figures(counted, slots)
    card["wave_ms_p50"] = statistics.median(one.wave_ms for one in counted) if counted else None
    card["requests"], card["slots"] = len(counted), len(slots)
    card["calibration"] = _calibration(slots)
    sources = sorted({one.request.source for one in counted})
    card["by_source"] = {
        source: _figures(
            [one for one in counted if one.request.source == source],
            [slot for slot in slots if slot.source == source],
        )
        for source in sources
    }
    kinds = sorted({slot.kind for slot in slots})
    card["by_slot_type"] = {kind: _slot_figures([slot for slot in slots if slot.kind == kind]) for kind in kinds}
    card["baselines"] = {
        "always_null": _baseline(counted, _always_null(counted)),
        "majority": _baseline(counted, _majority(counted)),
        "lexical": _baseline(counted, [_lexical(one.request) for one in counted]),
    }
    wrong = [slot for slot in slots if not slot.right]
    card["worst_errors"] = [slot.line for slot in sorted(wrong, key=lambda slot: -slot.confidence)[:WORST]]
    return card


def _figures(outcomes: Sequence[Outcome], slots: Sequence[SlotOutcome]) -> dict[str, Any]:
    several = [one for one in outcomes if len(Catalog.from_tools(list(one.request.tools)).functions) > 1]
    return {
        "function_accuracy": _share(_function_right(one) for one in outcomes),
        "function_accuracy_multi": _share(_function_right(one) for one in several),
        **_slot_figures(slots),
        "call_exact": _share(_call_right(one) for one in outcomes),
    }


def _slot_figures(slots: Sequence[SlotOutcome]) -> dict[str, Any]:
    valued = [slot for slot in slots if slot.valued]
    return {
        "slot_exact": _share(slot.right for slot in valued),
        "null_exact": _share(slot.right for slot in slots if not slot.valued),
        "leading": statistics.fmean(slot.leading for slot in valued) if valued else None,
        "valued_slots": len(valued),
    }


def _calibration(slots: Sequence[SlotOutcome]) -> dict[str, Any]:
    """How far confidence can be believed, on slots that have a value."""
    valued = [slot for slot in slots if slot.valued]
    sure = [slot for slot in valued if slot.confidence >= SURE]
    bins: dict[int, list[SlotOutcome]] = defaultdict(list)
    for slot in valued:
        bins[min(int(slot.confidence * 5), 4)].append(slot)
    table = [
        {
            "from": index / 5,
            "slots": len(bins[index]),
            "confidence": statistics.fmean(slot.confidence for slot in bins[index]),
            "right": _share(slot.right for slot in bins[index]),
        }
        for index in sorted(bins)
    ]
    gaps = [abs(sum(slot.confidence for slot in group) - sum(slot.right for slot in group)) for group in bins.values()]
    return {
        "sure_right": _share(slot.right for slot in sure),
        "sure_share": len(sure) / len(valued) if valued else None,
        "expected_error": sum(gaps) / len(valued) if valued else None,
        "bins": table,
    }


def _slot_outcomes(outcome: Outcome) -> Iterable[SlotOutcome]:
    """Every slot of every bound function: a value for the called one's filled slots, null for all others."""
    request, call = outcome.request, outcome.request.calls[0]
    for function in Catalog.from_tools(list(request.tools)).functions:
        said = said_of(outcome.hint, function.name)
        for slot in function.slots:
            valued = function.name == call.name and slot.name in call.arguments
            right = call.arguments[slot.name] if valued else None
            yield _slot_outcome(request, f"{function.name}.{slot.name}", slot, valued, right, said.get(slot.name))


def _slot_outcome(
    request: Request, name: str, slot: Slot, valued: bool, right: Any, answer: SlotHint | None
) -> SlotOutcome:
    nothing = answer is not None and (answer.absent or answer.value is None)
    if valued and right is not None:
        exact = answer is not None and not answer.absent and same(answer.value, right)
    else:
        exact = nothing
    leading = 0.0 if answer is None or nothing else _leading(str(answer.value), str(right))
    said = "nothing readable" if answer is None else "null" if answer.absent else repr(answer.value)
    confidence = answer.confidence if answer else 0.0
    truth = repr(right) if valued else "null"
    return SlotOutcome(
        source=request.source,
        kind="enum" if slot.options else "/".join(slot.types) or "any",
        valued=valued and right is not None,
        right=exact,
        leading=leading,
        confidence=confidence,
        line=f"{request.id} {name}: said {said} ({confidence:.2f}), right is {truth}",
    )


def said_of(hint: Hint | None, name: str) -> Mapping[str, SlotHint]:
    """What a hint says of a function's slots."""
    calls = (*hint.calls, *hint.alternatives) if hint else ()
    return next((call.slots for call in calls if call.name == name), {})


def _called(request: Request) -> Call | None:
    """The first call, if it is of a bound function."""
    bound = Catalog.from_tools(list(request.tools)).function(request.calls[0].name)
    return request.calls[0] if bound else None


def _function_right(outcome: Outcome) -> bool:
    hint = outcome.hint
    return hint is not None and bool(hint.calls) and hint.calls[0].name == outcome.request.calls[0].name


def _call_right(outcome: Outcome) -> bool:
    """The function, and exactly its filled slots with the right values."""
    if not _function_right(outcome):
        return False
    call = outcome.request.calls[0]
    said = {name: answer.value for name, answer in said_of(outcome.hint, call.name).items() if not answer.absent}
    return same(said, dict(call.arguments))


def _leading(answer: str, right: str) -> float:
    """Part of the right text that the answer starts with."""
    if not right:
        return float(not answer)
    equal = next((i for i, (a, b) in enumerate(zip(answer, right, strict=False)) if a != b), None)
    return (min(len(answer), len(right)) if equal is None else equal) / len(right)


def percent(share: float | None) -> str:
    """A share in words."""
    return "-" if share is None else f"{100 * share:.1f} %"


def _share(values: Iterable[bool]) -> float | None:
    counted = list(values)
    return sum(counted) / len(counted) if counted else None


def _baseline(outcomes: Sequence[Outcome], hints: Sequence[Hint | None]) -> dict[str, Any]:
    guessed = [Outcome(one.request, hint) for one, hint in zip(outcomes, hints, strict=True)]
    return _figures(guessed, [slot for one in guessed for slot in _slot_outcomes(one)])


def _always_null(outcomes: Sequence[Outcome]) -> list[Hint]:
    """The first function, and null for every slot."""
    return [_hint(one.request, 0, {}) for one in outcomes]


def _majority(outcomes: Sequence[Outcome]) -> list[Hint]:
    """The commonest position of the called function, and each slot name's commonest value, of these very answers."""
    places: Counter[int] = Counter()
    values: dict[str, Counter[str]] = defaultdict(Counter)
    originals: dict[str, Any] = {}
    for one in outcomes:
        call = one.request.calls[0]
        names = [function.name for function in Catalog.from_tools(list(one.request.tools)).functions]
        places[names.index(call.name)] += 1
        for name, value in call.arguments.items():
            values[name][repr(value)] += 1
            originals[repr(value)] = value
    common = {name: originals[count.most_common(1)[0][0]] for name, count in values.items()}
    place = places.most_common(1)[0][0] if places else 0
    return [_hint(one.request, place, common) for one in outcomes]


def _lexical(request: Request) -> Hint | None:
    """What is guessed without any model."""
    return lexical_hint(Catalog.from_tools(list(request.tools)), request.messages)


def _hint(request: Request, place: int, values: Mapping[str, Any]) -> Hint:
    functions = Catalog.from_tools(list(request.tools)).functions
    function = functions[min(place, len(functions) - 1)]
    slots = {
        slot.name: SlotHint(value=values[slot.name]) if slot.name in values else SlotHint(absent=True)
        for slot in function.slots
    }
    call = {"name": function.name, "slots": slots}
    others = [
        {"name": one.name, "slots": {slot.name: SlotHint(absent=True) for slot in one.slots}}
        for one in functions
        if one is not function
    ]
    return Hint.model_validate({"calls": (call,), "alternatives": tuple(others[:32])})
