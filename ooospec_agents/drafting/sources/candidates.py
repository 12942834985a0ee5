"""Values that a slot may have: what stands in a conversation, and what its schema names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ooospec_agents.catalog import Slot, slot_of
from ooospec_agents.drafting.sources.dates import WITH_TIME, YEARS, whole_day, written
from ooospec_agents.drafting.sources.phrases import WHOLE
from ooospec_agents.drafting.sources.reading import Place, Reading, is_phrase
from ooospec_agents.drafting.sources.schema import examples
from ooospec_agents.drafting.sources.shared_words import stem, words
from ooospec_agents.drafting.sources.spans import NUMBER_WORDS, number_of
from ooospec_agents.drafting.sources.wanted import CLOSED, MAX_ABOUT, NESTED, NUMERIC, Wanted

CLOCKS = 3
"""Clock times tried with one day."""
BESIDE = 40
"""Characters between a day and its clock time, at most."""
MAX_OPTIONS = 32
PERCENT = re.compile(r"\s?(?:%|percent\b)")
NEGATION = re.compile(r"\b(?:not?|without|never|exclud\w*|skip\w*|disabl\w*|don't|doesn't|isn't|off)\b")
DEFAULT = re.compile(r"default(?:s| value)?(?: is| to|:)?\s*['\"]?")

Feature = tuple[str, float]


class Candidate(NamedTuple):
    """A value that a slot may have.

    Attributes:
        value: The value.
        place: Index of its place among those looked at; -1 where the schema names it.
        features: What is known of the value beside its place.
    """

    value: Any
    place: int
    features: tuple[Feature, ...] = ()


def candidates(reading: Reading, places: Sequence[Place], wanted: Wanted) -> Iterator[Candidate]:
    """The values that a slot may have; one may come several times.

    Args:
        reading: The conversation.
        places: Its places that are looked at.
        wanted: The slot.
    """
    if wanted.kind in CLOSED:
        yield from _options(reading, wanted)
    elif wanted.kind in NESTED:
        yield from _lists(places, wanted)
    else:
        found = _numbers(reading, places, wanted) if wanted.kind in NUMERIC else _texts(reading, places, wanted)
        yield from found
        yield from _of_schema(wanted)


def _texts(reading: Reading, places: Sequence[Place], wanted: Wanted) -> Iterator[Candidate]:
    time, codes = "time" in wanted.about, wanted.codes
    for at, place in enumerate(places):
        span = place.span
        if span.day is not None:
            yield from _days(reading, at, place, wanted)
        elif span.value is None and (time or span.kind != "clock"):
            code = codes.get(span.text.lower().removeprefix("the ")) if codes is not None else None
            yield Candidate(span.text, at) if code is None else Candidate(code, at, (("as code", 1.0),))


def _numbers(reading: Reading, places: Sequence[Place], wanted: Wanted) -> Iterator[Candidate]:
    for at, place in enumerate(places):
        span = place.span
        value = typed(span.text, wanted.slot) if span.kind in ("number", "spelled") else None
        if value is None:
            continue
        if wanted.kind == "number" and PERCENT.match(reading.text, span.end):
            yield Candidate(round(value / 100, 10), at, (("percent as share", 1.0),))
            yield Candidate(value, at, (("percent as is", 1.0),))
        else:
            yield Candidate(value, at)


def _days(reading: Reading, at: int, place: Place, wanted: Wanted) -> Iterator[Candidate]:
    day = place.span.day
    with_time = WITH_TIME.search(wanted.about) is not None
    if day is None or not (with_time or any(word in wanted.about for word in ("date", "day", "yyyy"))):
        return
    joint = "T" if "8601" in wanted.about else " "
    clocks = sorted(reading.clocks, key=lambda clock: abs(clock[0] - day.start))[:CLOCKS]
    for year, text in enumerate(written(day, wanted.about)[: 1 if day.year else len(YEARS)]):
        named = (f"year {year}", 1.0)
        if not with_time:
            yield Candidate(text, at, (named,))
            continue
        yield Candidate(f"{text}{joint}{whole_day(wanted.last)}", at, (("whole day", 1.0), named))
        for index, (start, clock) in enumerate(clocks):
            beside = "clock beside" if abs(start - day.start) < BESIDE else "clock apart"
            features = (("day with clock", 1.0), (beside, 1.0), (f"clock {index}", 1.0), named)
            yield Candidate(f"{text}{joint}{clock}:00", at, features)


def _lists(places: Sequence[Place], wanted: Wanted) -> Iterator[Candidate]:
    slot, kind = wanted.slot, dict if wanted.kind == "object" else list
    items = slot.schema.get("items")
    item = slot_of(slot.name, items, True) if isinstance(items, dict) else Slot(slot.name)
    wants_text = "string" in item.types or not item.types
    for at, place in enumerate(places):
        span = place.span
        if isinstance(span.value, kind):
            fits = kind is dict or all(isinstance(one, str) == wants_text for one in span.value)
            yield Candidate(span.value, at, (("items of the type" if fits else "items of another type", 1.0),))
        elif kind is list and span.value is None and span.day is None:
            value = None if is_phrase(span.kind) or span.kind in WHOLE else typed(span.text, item)
            if value is not None:
                yield Candidate([value], at, (("only item", 1.0), (f"only item: {span.kind}", 1.0)))
    if slot.has_default and slot.default is not None:
        yield Candidate(slot.default, -1, ((f"{wanted.kind}: default", 1.0),))
    may_lack = "needed" if slot.required else "optional"
    yield Candidate(kind(), -1, ((f"{wanted.kind}: empty", 1.0), (f"{wanted.kind}: empty, {may_lack}", 1.0)))


def _options(reading: Reading, wanted: Wanted) -> Iterator[Candidate]:
    slot, name = wanted.slot, wanted.kind
    last = reading.turns[reading.last]
    lately, ever = reading.text[last.start : last.end].lower(), reading.text.lower()
    said, described = frozenset(words(lately)), DEFAULT.sub("default ", slot.description[:MAX_ABOUT].lower())
    stems = frozenset(map(stem, said))
    named = sum(share for word, share in wanted.share.items() if word in said)
    denied = NEGATION.search(lately) is not None
    for index, option in enumerate((slot.options or (True, False))[:MAX_OPTIONS]):
        text = (option if isinstance(option, str) else json.dumps(option)).lower().replace("_", " ")
        its = frozenset(words(text))
        found = {
            f"{name} default": slot.has_default and slot.default == option,
            f"{name} no default": not slot.has_default,
            f"{name} described as default": f"default {text}" in described,
            f"{name} index {min(index, 2)}": True,
            f"{name} said last": len(text) > 1 and text in lately,
            f"{name} said": len(text) > 1 and text in ever,
            f"{name} words": len(its & said) / len(its) if its else 0.0,
            f"{name} stems": sum(stem(word) in stems for word in its) / len(its) if its else 0.0,
        }
        if not slot.options:
            found |= {
                f"{option} named": named,
                f"{option} denied": denied,
                f"{option} named, denied": named * denied,
                f"{option} optional": not slot.required,
            }
        yield Candidate(option, -1, tuple((key, float(amount)) for key, amount in found.items() if amount))


def _of_schema(wanted: Wanted) -> Iterator[Candidate]:
    slot = wanted.slot
    may_lack = "needed" if slot.required else "optional"

    def named(value: Any, kind: str) -> Candidate:
        names = (f"kind {kind}", f"kind {kind}, {may_lack}", f"{wanted.kind}: {kind}")
        return Candidate(value, -1, tuple((name, 1.0) for name in names))

    if slot.has_default and slot.default is not None:
        yield named(slot.default, "default")
    for index, value in enumerate(examples(slot)):
        yield named(value, f"example {min(index, 1)}")
    if wanted.kind == "secret":
        yield named(f"your_{slot.name}_here", "placeholder")
    if "string" in slot.types and not slot.required:
        yield named("", "empty")
    if wanted.kind in NUMERIC and "year" in wanted.share:
        for index, year in enumerate(YEARS):
            yield named(int(year), f"year unsaid {index}")


def typed(text: str, slot: Slot) -> Any:
    """A text as a value of the slot's type, or None where it cannot be one."""
    if text.lower() in NUMBER_WORDS and "string" not in slot.types:
        return NUMBER_WORDS[text.lower()]
    if "integer" in slot.types or "number" in slot.types:
        value = number_of(text)
        return value if isinstance(value, int) or "number" in slot.types else None
    return text
