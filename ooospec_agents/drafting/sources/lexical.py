"""Values without any model: typed spans of the conversation, options and dates that it names."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from ooospec_agents.catalog import Slot
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.dates import LAST, MOMENT, WITH_TIME, YEARS, punctuated, whole_day, written
from ooospec_agents.drafting.sources.shared_words import words
from ooospec_agents.drafting.sources.spans import NUMBER_WORDS, Span, Spans, spaced

MAX_GUESSES = 6
SHARE = 0.8
"""What a span's share of all fits is worth as a probability, before the slot's kind is looked at."""
LIKELIEST = 0.9
PLACEHOLDER = 0.6
"""Probability that a string that begins as a placeholder is one: targets that know no token write "your_token_here"."""
A_FORMULA = 0.7
"""Probability that a formula of the conversation is what is to be computed, and is written with spaces."""
A_YEAR = 0.15
"""Probability of the likeliest year where the conversation names none."""
PERCENT = re.compile(r"\s?(?:%|percent\b)")
OF_HUNDRED = 0.75
"""Share of percentages that are written as a part of one, where the parameter is no whole number."""


class LexicalValues:
    """Values for slots from the spans of one conversation.

    Args:
        conversation: The messages as text, newest last.
    """

    def __init__(self, conversation: str) -> None:
        self._spans = Spans(conversation)

    def look_ahead(self) -> None:
        """Find all spans now; otherwise each kind is looked for when it is first asked for."""
        self._spans.find_all()

    def guesses(self, slot: Slot) -> list[Guess]:
        """A few values for a slot, of each kind the likeliest first."""
        if slot.options:
            return self._options(slot)
        if "boolean" in slot.types or "object" in slot.types or "array" in slot.types:
            return []  # a list is drafted entry by entry, as one of its entries alone it is never right
        numeric = "integer" in slot.types or "number" in slot.types
        ranked = self._ranked(slot, numeric)
        total = sum(score for score, _ in ranked) + 1.0
        out = [*self._formulas(slot), *self._moments(slot)] if not numeric else []
        worth = SHARE * _trust(slot, numeric)
        for score, span in ranked:
            value = _typed(span.text, slot)
            if value is not None:
                sure = min(worth * score / total, LIKELIEST)
                if "number" in slot.types and PERCENT.match(span.beside[1]):
                    out.append(Guess(float(Decimal(str(value)) / 100), sure * OF_HUNDRED, "lexical"))
                    sure *= 1 - OF_HUNDRED
                out.append(Guess(value, sure, "lexical"))
        if numeric and "year" in words(slot.name):
            out += [Guess(int(year), A_YEAR / (1 + index), "lexical") for index, year in enumerate(YEARS)]
        return out

    def finish(self, slot: Slot | None, begun: str) -> Guess | None:
        """The rest of a string that begins with `begun`, from a date, a time or a span that begins so."""
        about = _about(slot) if slot is not None else ""
        if begun[:1].isdigit():
            for text in self._moments_from(begun, about):
                if text.startswith(begun) and len(text) > len(begun):
                    return Guess(text[len(begun) :], 0.5, "lexical")
            said = self._span_from(begun) if MOMENT.match(begun) else None
            rest = punctuated(begun, about, slot is not None and _wants_last(slot)) if said is None else None
            if rest is not None:
                return Guess(rest, 0.75, "lexical")
        if slot is not None and (placeholder := f"your_{slot.name}_here").startswith(begun) and len(begun) > 2:
            return Guess(placeholder[len(begun) :], PLACEHOLDER, "lexical")
        return self._span_from(begun)

    def _span_from(self, begun: str) -> Guess | None:
        low = begun.lower()
        fitting = [text for lowered, text in self._spans.lowered if len(text) > len(begun) and lowered.startswith(low)]
        return Guess(fitting[0][len(begun) :], 0.5 if len(fitting) == 1 else 0.35, "lexical") if fitting else None

    def _ranked(self, slot: Slot, numeric: bool) -> list[tuple[float, Span]]:
        """The spans that suit a slot best, at most `MAX_GUESSES`, each with how well it does."""
        about = _about(slot)
        name = set(words(slot.name))
        beside = self._spans.beside_numbers if numeric else self._spans.beside_texts
        bases = {kind: _numeric_fit(kind) if numeric else _text_fit(about, kind, name) for kind in beside.kinds}
        near = beside.near(name | set(words(slot.description[:160])), name)
        scores = [bases[kind] * worth for kind, worth in beside.weights]
        for at, words_near in near.items():
            scores[at] *= 1.0 + 0.8 * words_near
        best = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:MAX_GUESSES]
        return [(scores[at], beside.spans[at]) for at in best if scores[at] > 0]

    def _formulas(self, slot: Slot) -> list[Guess]:
        if not _computes(_about(slot)):
            return []
        return [Guess(spaced(text), A_FORMULA, "lexical") for text in self._spans.formulas]

    def _moments(self, slot: Slot) -> list[Guess]:
        about, last = _about(slot), _wants_last(slot)
        out: list[Guess] = []
        days = self._spans.days[::-1] if last else self._spans.days
        clock = ""
        if WITH_TIME.search(about):
            times = self._spans.times
            clock = ("T" if "8601" in about else " ") + (f"{times[0]}:00" if times else whole_day(last))
        if clock or "date" in about or "day" in about:
            for index, day in enumerate(days):
                sure = (0.7 if day.year else 0.35) / (1 + 0.5 * index)
                out.append(Guess(written(day, about)[0] + clock, sure, "lexical"))
        elif "time" in about:
            out += [Guess(time, 0.4 / (1 + index), "lexical") for index, time in enumerate(self._spans.times)]
        return out

    def _moments_from(self, begun: str, about: str) -> list[str]:
        """Days and times of the conversation as a value may have them that begins with `begun`."""
        moment = MOMENT.match(begun)
        if moment is not None:
            return [f"{moment[0]}{time}:00" for time in self._spans.times]
        days = [text for day in self._spans.days for text in written(day, about, begun)]
        return days + [text for time in self._spans.times for text in (time, time + ":00")]

    def _options(self, slot: Slot) -> list[Guess]:
        low = self._spans.text.lower()
        found = [(low.rfind(str(option).lower().replace("_", " ")), option) for option in slot.options if str(option)]
        best = max(found, key=lambda item: item[0], default=(-1, None))
        return [Guess(best[1], 0.7, "lexical")] if best[0] >= 0 else []


def _wants_last(slot: Slot) -> bool:
    return LAST.search(slot.name) is not None


def _computes(about: str) -> bool:
    return any(word in about for word in ("formula", "expression", "equation", "calculat"))


def _trust(slot: Slot, numeric: bool) -> float:
    # What must be said stands in the conversation, a number oftener than a name; what may be left out seldom does.
    if not slot.required:
        return 0.5
    return 2.0 if numeric else 1.2


def _numeric_fit(kind: str) -> float:
    return {"number": 1.0, "spelled": 0.5}.get(kind, 0.0)


def _text_fit(about: str, kind: str, name: set[str]) -> float:
    if kind == "date":
        return 2.5 if "date" in about or "time" in about else 0.1
    if kind == "time":
        return 1.5 if "time" in about and "date" not in about else 0.2
    if kind == "email":
        return 4.0 if "mail" in about else 0.2
    if kind == "url":
        return 4.0 if any(word in about for word in ("url", "link", "uri")) else 0.2
    if kind == "number" and ("id" in name or "number" in about or "code" in name):
        return 0.8
    return {"quoted": 1.2, "proper": 0.7, "identifier": 0.5, "number": 0.15, "code": 0.4}.get(kind, 0.0)


def _about(slot: Slot) -> str:
    return f"{slot.name} {slot.description[:160]} {slot.schema.get('format', '')}".lower()


def _typed(text: str, slot: Slot) -> Any:
    if text.lower() in NUMBER_WORDS and "string" not in slot.types:
        return NUMBER_WORDS[text.lower()]
    if "integer" in slot.types or "number" in slot.types:
        try:
            value = float(text.replace(",", ""))
        except ValueError:
            return None
        if value.is_integer() and "." not in text:
            return int(value)
        return value if "number" in slot.types else None
    return text
