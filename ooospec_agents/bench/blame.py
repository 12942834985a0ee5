"""What a decoding step was spent on: where a draft and the target's output part, and whose expectation was wrong.

Only texts are compared: what was expected (committed text and draft) and what came, each read by a cursor of its own.
So a recorded run of any drafter can be explained.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ooospec_agents.drafting.cursor import WHITESPACE, Cursor
from ooospec_agents.drafting.notations import cursor_for
from ooospec_agents.formats import FORMATS, Kind, Segment
from ooospec_agents.hint import Hint

Cause = Literal[
    "first step",
    "wrong name",
    "missing name",
    "wrong value",
    "missing value",
    "layout",
    "order",
    "slots",
    "end",
    "text",
    "token boundary",
    "hint late",
    "held back",
    "full draft",
    "fixed text",
    "last step",
]
"""Why a step was not the last one, or that it was.

"first step": the prefill, for which nothing can be drafted. "wrong ...": another name or value was expected; "missing
...": none. "layout": other whitespace, or the same value written otherwise. "order": the slot came, but later. "slots":
one slot more or less than expected. "end": the output ended, or a call followed, against expectation. "text": text
outside calls. "token boundary": the text was right and its tokens were not. "hint late": the hint knew, and came after
the step. "held back": the drafter knew, and drafted less. "full draft": all of it was right, and it was as long as
allowed. "fixed text": markup that was not drafted.
"""
CAUSES: tuple[Cause, ...] = get_args(Cause)


@dataclass(frozen=True)
class Reading:
    """An output, read: its segments with their places, whether it ended, and its calls.

    Attributes:
        text: The output's text, special tokens included, without the token that ends it.
        ended: Whether the output ends behind this text.
        segments: Segments and where each begins, in order.
        calls: Name and `(slot, raw value)` pairs of each call.
    """

    text: str
    ended: bool
    segments: list[tuple[int, Segment]]
    calls: list[tuple[str, list[tuple[str, str]]]]

    @classmethod
    def of(cls, text: str, wire_format: str, named: str = "", *, ended: bool = False) -> Reading:
        """Read a text that was written in a wire format."""
        layout = FORMATS.get(wire_format, FORMATS["json"])
        cursor = cursor_for(layout, layout.profile.style(), named)
        cursor.feed(text)
        places: list[tuple[int, Segment]] = []
        at = 0
        for segment in [*cursor.segments, *_open_end(cursor, text)]:
            places.append((at, segment))
            at += len(segment.text)
        return cls(text, ended, places, [(call.name, list(call.arguments)) for call in cursor.calls])

    def at(self, place: int) -> Segment | None:
        """The segment of the character at `place`, or None behind the text."""
        found = None
        for begin, segment in self.segments:
            if begin > place:
                break
            found = segment if place < begin + len(segment.text) else None
        return found

    def called_before(self, place: int) -> bool:
        """Whether a whole call stands before `place`."""
        return any(segment.kind == "end" and begin < place for begin, segment in self.segments)

    def next_key(self, place: int) -> str | None:
        """The slot whose key stands at or follows `place` in the same object, or None where the object is closed."""
        for begin, segment in self.segments:
            if begin + len(segment.text) <= place:
                continue
            if segment.kind == "key":
                return segment.slot
            if segment.kind in ("value", "end", "text", "name") or "}" in segment.text:
                return None
        return None


@dataclass(frozen=True)
class Blame:
    """What a step was spent on.

    Attributes:
        cause: Why another step was needed.
        source: Who expected what did not come; "" where nothing was expected.
        slot: The slot concerned, or "".
        expected: The text that was expected from the difference on, shortened.
        came: The text that came instead.
    """

    cause: Cause
    source: str = ""
    slot: str = ""
    expected: str = ""
    came: str = ""


def common_length(first: str, second: str) -> int:
    """Characters at which two texts agree, from their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (mine, its) in pairs if mine != its), min(len(first), len(second)))


def blame_difference(expected: Reading, came: Reading, source: str = "") -> Blame:
    """Say what kind of difference it is where two outputs part.

    Args:
        expected: Committed text and draft. Where it is a beginning of `came`, too little was expected.
        came: The whole output.
        source: Who expected the first token that did not come.
    """
    place = common_length(expected.text, came.text)
    is_end = place == len(came.text)
    mine, its = expected.at(place), came.at(place)
    slot = (its.slot if its is not None else "") or (mine.slot if mine is not None else "")

    def blamed(cause: Cause) -> Blame:
        return Blame(cause, source, slot, _shown(expected.text, place), _shown(came.text, place))

    if place == len(expected.text) and not expected.ended:
        cause = "end" if is_end or its is None else _missing(came, place, its)
        return Blame(cause, "", slot, "", _shown(came.text, place))
    if is_end or its is None or mine is None:
        return blamed("end")
    if mine.kind != its.kind and "end" in (mine.kind, its.kind):
        return blamed("slots" if expected.next_key(place) or came.next_key(place) else "end")
    if "text" in (mine.kind, its.kind):
        return blamed("end" if came.called_before(place) else "text")
    if mine.kind == "name" and its.kind == "name":
        return blamed("wrong name")
    if mine.kind == "value" and its.kind == "value":
        return blamed("layout" if _same_value(expected, came, place) else "wrong value")
    return blamed(_structure(expected, came, place, mine, its))


def knew(hint: Hint, came: Reading, place: int) -> bool:
    """Whether a hint says what came at `place`: the name of the call there, or the value of the slot."""
    segment = came.at(place)
    if segment is None or segment.call >= min(len(came.calls), len(hint.calls)):
        return False
    said = hint.calls[segment.call]
    name, arguments = came.calls[segment.call]
    if segment.kind == "name":
        return said.name == name
    if segment.kind != "value" or segment.slot not in said.slots:
        return False
    raw = next((raw for slot, raw in arguments if slot == segment.slot), "")
    return bool(_value(raw) == said.slots[segment.slot].value)


def _structure(expected: Reading, came: Reading, place: int, mine: Segment, its: Segment) -> Cause:
    """A difference in markup, between values."""
    here, there = expected.text[place], came.text[place]
    in_key = mine.kind == "key" and its.kind == "key"
    if not in_key and (here in WHITESPACE or there in WHITESPACE):
        return "layout"
    key, other = expected.next_key(place), came.next_key(place)
    if key is None and other is None:
        return "wrong value" if "value" in (mine.kind, its.kind) else "layout"
    if key is not None and other is not None and its.call < len(came.calls):
        written = [slot for slot, _ in came.calls[its.call][1]]
        return "order" if key in written else "slots"
    return "slots"


def _missing(came: Reading, place: int, its: Segment) -> Cause:
    if its.kind == "text" and came.called_before(place):
        return "end"
    if its.kind == "fixed":  # markup that leads to what was not known
        its = next((segment for begin, segment in came.segments if begin > place), its)
    causes: dict[Kind, Cause] = {
        "name": "missing name",
        "value": "missing value",
        "key": "slots",
        "text": "text",
        "end": "end",
        "fixed": "fixed text",
    }
    return causes[its.kind]


def _same_value(expected: Reading, came: Reading, place: int) -> bool:
    """Whether both wrote the same JSON value, only otherwise."""
    mine, its = expected.at(place), came.at(place)
    if mine is None or its is None or mine.slot != its.slot:
        return False
    first, second = _value(mine.text), _value(its.text)
    return first is not None and first == second


def _value(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _open_end(cursor: Cursor, text: str) -> list[Segment]:
    """The unfinished end of a text as segments: a begun key, name or value is one, what stands before it is not."""
    done = sum(len(segment.text) for segment in cursor.segments)
    rest = text[done:]
    if not rest:
        return []
    call = max(len(cursor.calls) - 1, 0)
    if not cursor.inside:
        outside: Kind = "end" if cursor.calls else "fixed" if _begins_mark(rest) else "text"
        return [Segment(outside, rest, call)]
    begun = cursor.partial.lstrip(WHITESPACE)
    if not begun or cursor.anchor == "after":
        return [Segment("fixed", rest, call, cursor.key)]
    head = rest[: len(rest) - len(begun)]
    begun_kind: Kind = "fixed"
    if cursor.anchor == "key":
        begun_kind = "key" if cursor.level == 2 else "fixed"
    elif cursor.level == 2:
        begun_kind = "value"
    elif cursor.key == "name":
        begun_kind = "name"
    parts = [Segment("fixed", head, call, cursor.key)] if head else []
    return [*parts, Segment(begun_kind, begun, call, cursor.key)]


def _begins_mark(text: str) -> bool:
    """Whether text outside calls is markup, or the beginning of some."""
    return any(mark.startswith(text.strip(WHITESPACE)) for mark in ("<tool_call>", "```json", "["))


def _shown(text: str, place: int, width: int = 40) -> str:
    return text[place : place + width]
