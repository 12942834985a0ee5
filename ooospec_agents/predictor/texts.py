"""What the encoder reads: the conversation, and a short text for each function and each slot.

A text remembers where its schema values (options, default, examples) stand in it, since a slot may point there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ooospec_agents.catalog import Function, Slot
from ooospec_agents.drafting.conversation import conversation_text

MAX_CONVERSATION_CHARS = 1200
"""Characters of the conversation's end that are read; the latest user turn may be longer."""
MAX_TURN_CHARS = 2400
"""Characters of the latest user turn."""
MAX_DESCRIPTION_CHARS = 160
MAX_OPTIONS_CHARS = 160
MAX_DEFAULT_CHARS = 60
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-]+")


@dataclass(frozen=True)
class SlotText:
    """A slot's text.

    Attributes:
        text: The text.
        options: For each option: the option, and where it stands, as start and end.
    """

    text: str
    options: tuple[tuple[Any, int, int], ...] = ()


def conversation_of(messages: Sequence[Any]) -> str:
    """The conversation's end; the latest user turn is whole as long as it is of a sane length."""
    turns = [message for message in messages if isinstance(message, Mapping) and message.get("role") != "system"]
    room = MAX_CONVERSATION_CHARS
    last = next((index for index in reversed(range(len(turns))) if turns[index].get("role") == "user"), None)
    if last is not None:
        room = max(room, min(len(conversation_text(turns[last:], MAX_TURN_CHARS)), MAX_TURN_CHARS))
    return conversation_text(turns, room)


def function_text(function: Function) -> str:
    """A function's name in words, what it does, and its parameters' names."""
    names = ", ".join(_words(slot.name) for slot in function.slots[:8])
    return f"{_words(function.name)}: {_clip(_flat(function.description), MAX_DESCRIPTION_CHARS)} ({names})"


def slot_text(function: Function, slot: Slot) -> SlotText:
    """A slot's name, type, options, default and description, what may be pointed at before what is cut off last."""
    kind = "/".join(slot.types) or "any"
    text = f"{_words(slot.name)} of {_words(function.name)}: {kind}{' required' if slot.required else ''};"
    found: list[tuple[Any, int, int]] = []
    options = slot.options or ((True, False) if "boolean" in slot.types else _item_options(slot))
    room = MAX_OPTIONS_CHARS
    for option in options:
        written = _written(option)
        room -= len(written) + 2
        if room < 0 or not written.strip():
            continue
        start = len(text) + 1
        text += f" {written},"
        found.append((option, start, start + len(written)))
    if slot.has_default and slot.default not in (None, ""):
        written = _clip(_written(slot.default), MAX_DEFAULT_CHARS)
        text += f" default {written};"
    if slot.description:
        text += f" {_clip(_flat(slot.description), MAX_DESCRIPTION_CHARS)}"
    return SlotText(text, tuple(found))


def about(slot: Slot) -> str:
    """The slot's name, description and format, lower case: they may show the form wanted."""
    return f"{slot.name} {slot.description[:300]} {slot.schema.get('format', '')}".lower()


def _item_options(slot: Slot) -> tuple[Any, ...]:
    items = slot.schema.get("items")
    options = items.get("enum") if isinstance(items, Mapping) else None
    return tuple(options) if isinstance(options, list) else ()


def _words(name: str) -> str:
    return _CAMEL.sub(" ", name).strip()


def _written(value: Any) -> str:
    return _flat(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width]
