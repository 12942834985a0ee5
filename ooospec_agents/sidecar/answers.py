"""Answers in the text's own tokens: how a slot's value is written for the sidecar, and read back from it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from ooospec_agents import strict_json
from ooospec_agents.catalog import Slot
from ooospec_agents.hint import SlotHint

ABSENT = "null"
"""The answer for a slot that is left out (or null, where that is its default)."""

_NUMBER = re.compile(r"[-+]?\d{1,18}(?:\.\d{1,18})?(?:[eE][-+]?\d{1,3})?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


def render_answer(value: Any, slot: Slot) -> str:
    """The answer that stands for a value, with the space before it.

    A string is written bare, as it would stand in the conversation, wherever `read_answer` reads it back as
    it was; else as JSON. Everything else is compact JSON, and None is `null`.
    """
    if value is None:
        return f" {ABSENT}"
    if isinstance(value, str) and "\n" not in value and "\r" not in value:
        read = read_answer(f" {value}", slot)
        if read is not None and not read.absent and isinstance(read.value, str) and read.value == value:
            return f" {value}"
    return " " + json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_answer(text: str, slot: Slot) -> SlotHint | None:
    """The value that an answer stands for, by the slot's types; None for garbage.

    Only the first line counts. The confidence is left at its default.
    """
    text = text.strip(" \t").split("\n", 1)[0].strip()
    if not text:
        return None
    if text == ABSENT:
        if slot.has_default and slot.default is None:
            return SlotHint(value=None)
        return SlotHint(absent=True)
    if slot.options:
        return _option(text, slot.options)
    value = _read(text, slot)
    return None if value is None else SlotHint(value=value)


def _option(text: str, options: tuple[Any, ...]) -> SlotHint | None:
    """The option that the text names, exactly or but for quotes and letter case."""
    quoted = _json(text)
    bare = quoted if isinstance(quoted, str) else text
    written = [(option if isinstance(option, str) else json.dumps(option), option) for option in options]
    for word, option in written:
        if word == bare:
            return SlotHint(value=option)
    for word, option in written:
        if word.casefold() == bare.casefold():
            return SlotHint(value=option)
    return None


def _read(text: str, slot: Slot) -> Any:
    """The value by the slot's types, the narrower type first; None for garbage."""
    parsed = _json(text)
    anything = not slot.types
    if anything and parsed is not None:
        return parsed
    bare = parsed if isinstance(parsed, str) else text
    readers: dict[str, Callable[[str], Any]] = {
        "boolean": _boolean,
        "integer": _integer,
        "number": _number,
        "array": lambda word: _of_type(_json(word), list),
        "object": lambda word: _of_type(_json(word), dict),
    }
    string = "string" in slot.types or anything
    # Where a string is allowed too, quotes say that it is one.
    if not (string and isinstance(parsed, str)):
        for name, reader in readers.items():
            if name in slot.types and (value := reader(bare)) is not None:
                return value
    return bare if string else None


def _json(text: str) -> Any:
    try:
        return strict_json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_type(value: Any, kind: type) -> Any:
    return value if isinstance(value, kind) else None


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.rstrip(".").casefold())


def _integer(text: str) -> int | None:
    number = _number(text)
    return int(number) if number is not None and number == int(number) else None


def _number(text: str) -> int | float | None:
    """The number at the text's start ("5 days" is 5), if it is finite; an int where no point or exponent is written."""
    match = _NUMBER.match(_THOUSANDS.sub("", text))
    if match is None:
        return None
    written = match.group()
    number = float(written) if any(mark in written for mark in ".eE") else int(written)
    return number if math.isfinite(number) else None
