"""What a text with tool calls is made of, in the order in which it is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Text:
    """Text that belongs to no call."""

    text: str


@dataclass(frozen=True)
class CallStart:
    """Call number `index` (from 0) begins. `Arguments` of that index follow."""

    index: int
    name: str


@dataclass(frozen=True)
class Arguments:
    """The next piece of the arguments of call `index`, as written but for raw control characters, escaped."""

    index: int
    text: str


Event = Text | CallStart | Arguments


def joined(events: Iterable[Event]) -> list[Event]:
    """The same events with neighbouring pieces of one text, or of one call's arguments, put together."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, Text) and isinstance(last, Text):
            result[-1] = Text(last.text + event.text)
        elif isinstance(event, Arguments) and isinstance(last, Arguments) and event.index == last.index:
            result[-1] = Arguments(event.index, last.text + event.text)
        else:
            result.append(event)
    return result
