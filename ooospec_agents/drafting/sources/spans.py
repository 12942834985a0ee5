"""Stretches of a conversation that look like values: numbers, dates, quotations, names, codes."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ooospec_agents.drafting.sources.dates import (
    CLOCK,
    DAY_FIRST,
    MONTH_FIRST,
    YEAR_FIRST,
    Day,
    clock_time,
    find_days,
)
from ooospec_agents.drafting.sources.shared_words import STOP_WORDS, words

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|\.\d)|(?<=[$€£])\d+(?:\.\d+)?")
NUMBER_UNIT = re.compile(r"(?<!\d)-?\d+(?:\.\d+)?(?=[A-Za-z%])")
QUOTED = re.compile(r"\"([^\"\n]{1,120})\"|(?<!\w)'([^'\n]{1,120})'(?!\w)|“([^”\n]{1,120})”|`([^`\n]{1,120})`")
DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?)?\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b")
TIME = re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b")
EMAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+\b")
URL = re.compile(r"https?://[^\s\"'<>)]+")
IDENTIFIER = re.compile(r"\b(?=[\w-]{0,63}\d)(?=[\w-]{0,63}[A-Za-z])[\w-]{3,64}\b")
# A full stop belongs to a name inside it, after initials ("J.R.") and after two letters ("St."): else a sentence ends.
_NAME = r"[A-Z](?:[\w'’-]?\.(?!\w)|[\w'’-]*(?:\.[\w'’-]+)*(?:(?<=\.\w)\.)?)"
PROPER = re.compile(rf"\b{_NAME}(?:[ ](?:of|the|de|and|&)(?=[ ][A-Z])|[ ]{_NAME})*")
CODE = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+|_\w+|[a-z][A-Z]\w*)+\b|\[[^\[\]\n]{0,120}\]")
# Every repetition is bounded: a text of brackets and digits alone must not take long.
_OPERAND = r"\d[\d.]{0,20}\){0,4}"
FORMULA = re.compile(
    rf"(?<![\w.])[-(]{{0,4}}{_OPERAND}(?:\s{{0,2}}[-+*/^]\s{{0,2}}\({{0,4}}-?{_OPERAND}){{1,12}}(?![\w/-])"
)
COMPUTED = re.compile(r"[+*^(]|\s[-/]\s")
"""What tells a formula from a date, a range or a code, which may have a dash or a slash."""
OPERATOR = re.compile(r"(?<=[\d)])\s*([-+*/^])\s*")
NUMBER_WORDS = {
    word: index
    for index, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
WHOLE_NUMBER = re.compile(r"-?\d{1,40}")
SPELLED = re.compile(rf"\b({'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)
SOLID = (("email", EMAIL), ("url", URL), ("date", DATE), ("time", TIME))
"""Kinds in which, as in quotations, no other kind is looked for."""
LOOSE = (
    ("number", NUMBER),
    ("number", NUMBER_UNIT),
    ("spelled", SPELLED),
    ("identifier", IDENTIFIER),
    ("code", CODE),
    ("proper", PROPER),
)
OPENS_SENTENCE = (": ", ". ", "? ", "! ")


@dataclass
class Span:
    """A stretch of the conversation that may be a value.

    Attributes:
        text: What stands there, or the text of the value that it names; "" for a day.
        kind: What it looks like.
        start, end: Where it stands.
        day: The day that it names, if it does.
        value: The list or the object that it is, if it is one.
    """

    text: str
    kind: str
    start: int
    end: int
    day: Day | None = None
    value: Any = None

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its text."""
        return frozenset(words(self.text))


class Covered:
    """Stretches of a text that do not overlap, in its order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __contains__(self, place: int) -> bool:
        at = bisect_right(self._starts, place) - 1
        return at >= 0 and place < self._ends[at]

    def meets(self, start: int, end: int) -> bool:
        """Whether a part of a stretch is covered."""
        at = bisect_left(self._starts, end) - 1
        return at >= 0 and start < self._ends[at]

    def add(self, start: int, end: int) -> None:
        """Cover a stretch that meets no other."""
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._ends.insert(at, end)


def find_spans(text: str) -> tuple[list[Span], Covered]:
    """The spans of a text, phrases left out, in no order; and the stretches that are values as a whole."""
    out: list[Span] = []
    covered, inner = Covered(), Covered()
    for start, end in _matches(QUOTED, text):
        if not covered.meets(start, end) and not any(kind.fullmatch(text, start, end) for _, kind in SOLID):
            covered.add(start, end)
            out.append(Span(text[start:end], "quoted", start, end))
    for kind, pattern in SOLID:
        for match in pattern.finditer(text):
            start, end = match.span()
            if not inner.meets(start, end):
                inner.add(start, end)
                out.append(Span(match[0].rstrip(".'"), kind, start, end))
            if not covered.meets(start, end):
                covered.add(start, end)
    met: set[tuple[str, int]] = set()
    for kind, pattern in LOOSE:
        for start, end in _matches(pattern, text):
            whole = text[start:end].rstrip(".'")
            if start in covered or (kind, start) in met:
                continue
            met.add((kind, start))
            if kind != "proper":
                out.append(Span(whole, kind, start, start + len(whole)))
            elif not _is_ordinary(text, start, whole):
                out += _names(whole, start, _opens_sentence(text, start))
    for match in FORMULA.finditer(text):
        formula = match[0].rstrip(".")
        if COMPUTED.search(formula):
            out.append(Span(spaced(formula), "formula", *match.span()))
    return out + list(_moments(text)), covered


def _moments(text: str) -> Iterator[Span]:
    """Days and clock times: as values, and days as they are said."""
    for day in find_days(text):
        yield Span("", "day" if day.year else "day without year", day.start, day.end, day)
    for pattern in (MONTH_FIRST, DAY_FIRST):
        for match in pattern.finditer(text):
            yield Span(match[0], "day as said", *match.span())
    for match in CLOCK.finditer(text):
        yield Span(clock_time(match), "clock", *match.span())


def _names(text: str, start: int, first: bool) -> Iterator[Span]:
    """A name without its possessive, and the parts of one that is two: "Rome and Paris".

    Args:
        text: The name.
        start: Where it stands.
        first: Whether a sentence begins with it: then its first word may be none of it, as in "Call Ann Lee".
    """
    text = text.removesuffix("'s").removesuffix("’s")
    yield Span(text, "proper", start, start + len(text))
    if first and " " in text:
        at = text.index(" ") + 1
        yield from _names(text[at:], start + at, False)
    if " and " in text or " & " in text:
        at = 0
        for part in re.split(r" (?:and|&) ", text):
            at = text.find(part, at)
            yield Span(part, "proper part", start + at, start + at + len(part))


def _is_ordinary(text: str, start: int, name: str) -> bool:
    # "Find" in "user: Find ..." or after a full stop is capitalised for its place, not for what it is.
    if name.lower() in STOP_WORDS or text[start - 1 : start] in ("", "\n"):
        return True
    return " " not in name and _opens_sentence(text, start)


def _opens_sentence(text: str, start: int) -> bool:
    before = text[max(start - 2, 0) : start]
    return before in OPENS_SENTENCE or before.endswith("\n")


def number_of(text: str) -> int | float | None:
    """The number that a text is, as far as it is finite; None for anything else."""
    digits = text.replace(",", "")
    try:
        number = int(digits) if WHOLE_NUMBER.fullmatch(digits) else float(digits)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def spaced(formula: str) -> str:
    """A formula with a space on both sides of each operator, as models write it."""
    return OPERATOR.sub(r" \1 ", formula)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    for match in pattern.finditer(text):
        group = next((index for index in range(1, pattern.groups + 1) if match.group(index)), 0)
        yield match.span(group)


def moments_in(text: str) -> Covered:
    """Where days and clock times stand."""
    covered = Covered()
    for pattern in (MONTH_FIRST, DAY_FIRST, YEAR_FIRST, CLOCK):
        for match in pattern.finditer(text):
            if not covered.meets(*match.span()):
                covered.add(*match.span())
    return covered
