"""Dates and times named in prose, written the way parameters want them."""

from __future__ import annotations

import re
from dataclasses import dataclass

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NAMES = "|".join(f"{month[:3]}(?:{month[3:]})?" if month != "may" else "may" for month in MONTHS)
_DAY, _YEAR = r"(\d{1,2})(?:st|nd|rd|th)?\b", r"(?:,?\s+(\d{4}))?"
MONTH_FIRST = re.compile(rf"\b({_NAMES})\.?\s+{_DAY}{_YEAR}", re.IGNORECASE)
DAY_FIRST = re.compile(rf"\b{_DAY}\s+(?:of\s+)?({_NAMES})\b\.?{_YEAR}", re.IGNORECASE)
YEAR_FIRST = re.compile(r"\b(\d{4})([-./])(\d{1,2})\2(\d{1,2})\b")
CLOCK = re.compile(r"\b(\d{1,2})(?::(\d{2}))?\s*([ap])\.?m\b\.?", re.IGNORECASE)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]")
"""A day of which the time follows."""
WITH_TIME = re.compile(r"%h|hh:|\dt\d\d:")
"""A description, in lower case, that wants a day and its time."""
LAST = re.compile(r"(?:^|[_\W])(?:end|until|to|finish|last|out|return)(?:$|[_\W])|End|Out|Until")
"""A parameter's name that wants the later of two days, and the end of a day of which no time was named."""
YEARS = ("2023", "2024", "2022", "2021")
"""Years tried where prose names none, the commonest in models' answers first."""
MAX_FOUND = 8


@dataclass(frozen=True)
class Day:
    """A day named in prose, and where; `year` is "" where none was named."""

    year: str
    month: int
    day: int
    start: int
    end: int


def find_days(text: str) -> list[Day]:
    """The days that a text names, in the order of the text."""
    found = [Day(m[3] or "", _month(m[1]), int(m[2]), *m.span()) for m in MONTH_FIRST.finditer(text)]
    found += [Day(m[3] or "", _month(m[2]), int(m[1]), *m.span()) for m in DAY_FIRST.finditer(text)]
    found += [Day(m[1], int(m[3]), int(m[4]), *m.span()) for m in YEAR_FIRST.finditer(text)]
    return sorted(found, key=lambda day: day.start)[-MAX_FOUND:]


def find_times(text: str) -> list[str]:
    """The clock times that a text names in twelve-hour form, as HH:MM."""
    return [clock_time(match) for match in CLOCK.finditer(text)][-MAX_FOUND:]


def clock_time(match: re.Match[str]) -> str:
    """A match of `CLOCK`, as HH:MM."""
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    return f"{hour:02d}:{match[2] or '00'}"


def written(day: Day, about: str, begun: str = "") -> list[str]:
    """A day as a parameter's value: the likeliest form first, each that begins with `begun`.

    Args:
        day: The day.
        about: The parameter's name and description, lower case: it may show the form wanted.
        begun: What is written of the value already.
    """
    years = (day.year,) if day.year else YEARS
    iso = [f"{year}-{day.month:02d}-{day.day:02d}" for year in years]
    american = [f"{day.month:02d}/{day.day:02d}/{year}" for year in years]
    european = [f"{day.day:02d}/{day.month:02d}/{year}" for year in years]
    forms = [iso, american, european]
    if "mm/dd" in about:
        forms = [american, iso, european]
    elif "dd/mm" in about:
        forms = [european, iso, american]
    return [text for form in forms for text in form if text.startswith(begun)]


def whole_day(last: bool) -> str:
    """The time of a day of which no time was named: its begin, or its end where the last moment is wanted."""
    return "23:59:59" if last else "00:00:00"


def punctuated(begun: str, about: str, last: bool = False) -> str | None:
    """What must follow a date or a time that has begun, and what mostly does: separators, minutes and seconds of 00.

    Args:
        begun: What is written of the value.
        about: The parameter's name and description, lower case: it may show the form wanted.
        last: Whether the parameter wants the last moment of a time.

    Returns:
        The text that follows, "" where the value is whole, or None where nothing is known.
    """
    moment = MOMENT.match(begun)
    if moment is None and not any(word in about for word in ("date", "time", "8601")):
        return None
    if re.fullmatch(r"\d{4}(?:-\d\d)?", begun):
        return "-"
    if re.fullmatch(r"\d{4}-\d\d-\d\d", begun):
        if re.search(r"\dt\d", about):
            return "T"
        return " " if WITH_TIME.search(about) or "time" in about else ""
    if moment is not None and whole_day(last).startswith(begun[moment.end() :]):
        return whole_day(last)[len(begun) - moment.end() :]
    clock = re.search(r"(?:^|[ T])\d\d(:?)(\d{0,2})(:?)(\d{0,2})$", begun)
    if clock is None:
        return None
    seconds = moment is not None or "%s" in about or ":ss" in about
    written = "".join(clock.groups())
    return (":00:00" if seconds or clock[3] else ":00")[len(written) :]


def _month(name: str) -> int:
    return next(index for index, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))
