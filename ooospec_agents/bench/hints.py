"""Hints of known quality, in place of the sidecar's: right, wrong in one way, late, never sent, garbage."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.requests import Answer
from ooospec_agents.drafting.cursor import Cursor
from ooospec_agents.formats import Style
from ooospec_agents.hint import CallHint, Hint, SlotHint

Kind = Literal["right", "wrong_name", "wrong_value", "half", "late", "never", "garbage"]
"""The cross of the identity run."""
KINDS: tuple[Kind, ...] = get_args(Kind)

CONFIDENCE = 0.9
CERTAIN = 0.99
"""Of a hint that is the plain output."""
LATE_AFTER = 6
"""A late hint is posted after this many output tokens."""


@dataclass(frozen=True)
class Delivery:
    """What is sent for one request, and when.

    Attributes:
        with_request: Hint text that goes along in the request, or "".
        posted: Bytes posted to the hint route, or None.
        after_tokens: Post them once that many output tokens came; 0: right after sending.
        tagged: Whether the request carries an id of the client's own.
    """

    with_request: str = ""
    posted: bytes | None = None
    after_tokens: int = 0
    tagged: bool = False


Call = tuple[str, dict[str, Any]]


def calls_of(answer: Answer) -> list[Call]:
    """The calls of an answer with parsed arguments; of broken or cut-off arguments, the values that are whole."""
    calls = []
    for call in answer.calls:
        if call["name"]:
            cursor = Cursor(Style(), bare=True, named=call["name"])
            cursor.feed(call["arguments"] or "{}")
            if cursor.calls:
                calls.append((call["name"], cursor.calls[0].values()))
    return calls


def hint_of(calls: Sequence[Call], *, complete: bool = True, confidence: float = CONFIDENCE) -> Hint:
    """The hint that says exactly these calls, `complete`: and no other slot; for none, that no call is expected."""
    if not calls:
        return Hint(no_call=1.0, source="bench")
    return Hint(
        calls=tuple(_call_hint(name, arguments, complete, confidence) for name, arguments in calls), source="bench"
    )


def gold_hint(item: Item) -> Hint:
    """The data's reference calls as a hint."""
    return hint_of([(call["name"], call["arguments"]) for call in item.gold])


def wrong_hint(calls: Sequence[Call], item: Item) -> Hint:
    """A hint of which nothing is right: other functions, other values; for no call, some call."""
    calls = calls or [(other_name("", item), {})]
    return hint_of([(other_name(name, item), {key: wrong(value) for key, value in a.items()}) for name, a in calls])


def degraded_hint(calls: Sequence[Call], item: Item, right: float, seed: str) -> Hint:
    """A hint whose slots are right with probability `right`, its names with 1 - (1 - right) / 9.

    That ratio (64 % of slots beside 96 % of names) is the one published for a sidecar of 0.6B.
    Drawn from `seed` and the item's id alone, so that every method and every repetition gets the same hint.
    """
    rng = random.Random(f"{seed}/{item.id}")
    drawn = []
    for name, arguments in calls:
        said = name if rng.random() < 1 - (1 - right) / 9 else other_name(name, item)
        drawn.append((said, {key: value if rng.random() < right else wrong(value) for key, value in arguments.items()}))
    return hint_of(drawn)


def delivery(kind: Kind, calls: Sequence[Call], item: Item) -> Delivery:
    """What to send for one request of the identity run, made from the plain output's own calls."""
    if kind == "right":
        return Delivery(with_request=hint_of(calls).to_json())
    if kind == "wrong_name":
        return Delivery(with_request=hint_of([(other_name(name, item), a) for name, a in calls]).to_json())
    if kind == "wrong_value":
        changed = [(name, {key: wrong(value) for key, value in a.items()}) for name, a in calls]
        return Delivery(with_request=hint_of(changed).to_json())
    if kind == "half":
        halves = [(name, dict(list(a.items())[: len(a) // 2])) for name, a in calls]
        return Delivery(with_request=hint_of(halves, complete=False).to_json())
    if kind == "late":
        return Delivery(posted=hint_of(calls).to_json().encode(), after_tokens=LATE_AFTER, tagged=True)
    if kind == "garbage":
        nonsense = Hint.of_call('"}</tool_call>\x00', {"\n": "```", "a": [{"b": None}] * 8}, 1.0, "bench")
        return Delivery(with_request=nonsense.to_json(), posted=b'{"calls": [{"name"', tagged=True)
    return Delivery(tagged=True)


def other_name(name: str, item: Item) -> str:
    """Another function bound to the request, or one that does not exist where there is no other."""
    names = [tool["function"]["name"] for tool in item.tools if tool.get("type") == "function"]
    return next((other for other in names if other != name), f"{name}_of_nothing")


def wrong(value: Any) -> Any:
    """A value of the same type that is not this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 7
    if isinstance(value, str):
        return f"{value[::-1]}x"
    if isinstance(value, list):
        return [wrong(entry) for entry in value] or ["x"]
    if isinstance(value, dict):
        return {key: wrong(entry) for key, entry in value.items()} or {"x": "x"}
    return "x"


def _call_hint(name: str, arguments: dict[str, Any], complete: bool, confidence: float) -> CallHint:
    slots = {key: SlotHint(value=value, confidence=confidence) for key, value in arguments.items()}
    return CallHint(name=name, confidence=confidence, slots=slots, complete=complete)
