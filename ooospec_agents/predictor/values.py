"""From a stretch of text to a value of a slot's type, and back: where a value stands in a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ooospec_agents import strict_json
from ooospec_agents.catalog import Slot
from ooospec_agents.drafting.sources.dates import (
    CLOCK,
    DAY_FIRST,
    MONTH_FIRST,
    YEAR_FIRST,
    find_days,
    find_times,
    written,
)
from ooospec_agents.drafting.sources.spans import NUMBER_WORDS
from ooospec_agents.predictor.texts import about

_NUMBER_START = re.compile(
    r"[$€£#]?\s*([-+]?\d+(?:,\d{3})*(?:\.\d+)?)(?:\s*(%|k\b|million\b|thousand\b|billion\b))?", re.I
)
_SCALE = {"k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9}
MAX_APART = 40
"""Characters between the starts of a day and of its time, at most."""
_EDGE = " \t\n,;:!?"
_PAIRS = {'"': '"', "'": "'", "`": "`", "“": "”", "(": ")"}
_SPELLED = {"zero": 0, "once": 1, "twice": 2, "dozen": 12, **NUMBER_WORDS}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SPELLED |= {word: 10 * number for number, word in enumerate(_TENS, 2)}
_SPELLED |= {"hundred": 100, "thousand": 1000, "fifteen": 15}
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
_FORM = re.compile(r"yyyy|mm[-/]dd|dd[-/]mm|iso|\d{4}-\d\d-\d\d|\d\d/\d\d/\d{4}|format.{0,12}date")
_MOMENT = re.compile(r"hh:mm|\d\d:\d\d:\d\d|date-time|datetime")
_CLOCK = re.compile(r"\b(\d{1,2}):(\d{2})\b")


def read(text: str, slot: Slot) -> Any:
    """The value that a stretch of text stands for in a slot, or None where it cannot be one.

    Args:
        text: The text as it stands in the conversation or the schema.
        slot: The slot; for a list's element, a slot of the element's type.
    """
    bare = _trim(text)
    if not bare:
        return None
    if slot.options:
        return _option(bare, slot.options)
    types = slot.types
    if "boolean" in types:
        low = bare.casefold()
        return True if low in _TRUE else False if low in _FALSE else None
    if "integer" in types or "number" in types:
        number = _number(bare, "number" in types)
        if number is not None or "string" not in types:
            return number
    if "array" in types or "object" in types:
        return _json(bare, list if "array" in types else dict)
    return _moment(bare, slot) if "string" in types else _anything(bare)


def element(slot: Slot) -> Slot:
    """A slot as its list's elements see it."""
    items = slot.schema.get("items")
    items = items if isinstance(items, dict) else {}
    kind = items.get("type")
    options = items.get("enum")
    return Slot(
        slot.name,
        (kind,) if isinstance(kind, str) else ("string",),
        slot.description,
        options=tuple(options) if isinstance(options, list) else (),
        schema=items,
    )


def places(value: Any, text: str, slot: Slot) -> Iterator[tuple[int, int]]:
    """Where in a text a value stands, in whatever form `read` turns back into it."""
    for start, end in _candidates(value, text):
        if same_value(read(text[start:end], slot), value):
            yield start, end


def same_value(one: Any, other: Any) -> bool:
    """Equal, and both or neither a truth value."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _candidates(value: Any, text: str) -> Iterator[tuple[int, int]]:
    if isinstance(value, str):
        if value:
            for match in re.finditer(re.escape(value), text, re.IGNORECASE):
                if _whole(text, match.start(), match.end()):
                    yield match.span()
        if re.search(r"\d", value):
            days = [
                match.span() for pattern in (MONTH_FIRST, DAY_FIRST, YEAR_FIRST) for match in pattern.finditer(text)
            ]
            times = [match.span() for pattern in (CLOCK, _CLOCK) for match in pattern.finditer(text)]
            yield from (*days, *times)
            # A day and a time that stand together are one value.
            for day in days:
                for time in times:
                    if abs(day[0] - time[0]) < MAX_APART:
                        yield min(day[0], time[0]), max(day[1], time[1])
        return
    if isinstance(value, bool):
        for match in re.finditer(r"\b(?:true|false)\b", text, re.IGNORECASE):
            yield match.span()
        return
    if isinstance(value, int | float):
        for match in _NUMBER_START.finditer(text):
            yield match.span()
            yield match.span(1)
        for match in re.finditer(r"\b[A-Za-z]+\b", text):
            if match.group().casefold() in _SPELLED:
                yield match.span()
        return
    if isinstance(value, list | dict):
        for match in re.finditer(r"\[[^\[\]]*\]|\{[^{}]*\}", text):
            yield match.span()


def _whole(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return not ((before.isalnum() and text[start].isalnum()) or (after.isalnum() and text[end - 1].isalnum()))


def _trim(text: str) -> str:
    bare = text.strip(" \t\n,")
    if bare[:1] not in _PAIRS or _PAIRS[bare[0]] != bare[-1:]:  # within quotes every mark counts
        bare = bare.strip(_EDGE)
    while len(bare) > 1 and _PAIRS.get(bare[0]) == bare[-1]:
        bare = bare[1:-1].strip()
    if bare[:1] in _PAIRS and bare.count(bare[0]) == 1 and bare[0] != "(":
        bare = bare[1:]
    if bare[-1:] in "\"'`”" and bare.count(bare[-1:]) == 1:
        bare = bare[:-1]
    return bare


def _option(text: str, options: tuple[Any, ...]) -> Any:
    for fold in (str, _folded):
        wanted = fold(text)
        for option in options:
            if fold(option if isinstance(option, str) else json.dumps(option)) == wanted:
                return option
    return None


def _folded(text: str) -> str:
    return re.sub(r"[\s_\-.]+", "", text.casefold())


def _number(text: str, real: bool) -> int | float | None:
    match = _NUMBER_START.match(text)
    if match is None:
        return _SPELLED.get(text.casefold())
    written_ = match[1].replace(",", "")
    number: int | float = float(written_) if "." in written_ else int(written_)
    unit = (match[2] or "").casefold()
    if unit in _SCALE:
        number = number * _SCALE[unit]
    elif unit == "%" and real:
        number = number / 100
    if isinstance(number, float) and not real:
        return int(number) if number.is_integer() else None
    return int(number) if isinstance(number, float) and unit in _SCALE and number.is_integer() else number


def _moment(text: str, slot: Slot) -> str:
    """The text, or a day or a time in the form that the slot asks for."""
    wanted = about(slot)
    exact = bool(_MOMENT.search(wanted))
    times = find_times(text) or [f"{int(hour):02d}:{minute}" for hour, minute in _CLOCK.findall(text)]
    if _FORM.search(wanted):
        days = find_days(text)
        if len(days) == 1:
            day = written(days[0], wanted)[0]
            if not exact:
                return day
            middle = "T" if re.search(r"dd'?t'?hh|\dt\d\d:", wanted) else " "
            return f"{day}{middle}{times[0] if times else '00:00'}:00"
    if exact and len(times) == 1 and not _FORM.search(wanted):
        return times[0]
    return text


def _anything(text: str) -> Any:
    try:
        return strict_json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json(text: str, kind: type) -> Any:
    try:
        value = strict_json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None
