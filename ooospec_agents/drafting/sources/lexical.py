"""Guesses without any model: the function by shared words, values from typed spans of the conversation."""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.dates import Day, find_days, find_times, written

WORD = re.compile(r"[A-Za-z]+|\d+|[^\W\d_]+")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
STOP_WORDS = frozenset(
    """
    a an and are as at be by can could do for from get give has have how i in is it like me my need of
    on or please set so some tell that the their then this to use user using want was what when which
    will with would you your
    """.split()
)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|\.\d)|(?<=[$€£])\d+(?:\.\d+)?")
NUMBER_UNIT = re.compile(r"-?\d+(?:\.\d+)?(?=[A-Za-z%])")
QUOTED = re.compile(r"\"([^\"\n]{1,120})\"|(?<!\w)'([^'\n]{1,120})'(?!\w)|“([^”\n]{1,120})”|`([^`\n]{1,120})`")
DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?)?\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b")
TIME = re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b")
EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
URL = re.compile(r"https?://[^\s\"'<>)]+")
IDENTIFIER = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{3,64}\b")
PROPER = re.compile(r"\b[A-Z][\w'’.-]*(?:[ ](?:of|the|de|and|&)(?=[ ][A-Z])|[ ][A-Z][\w'’.-]*)*")
CODE = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+|_\w+|[a-z][A-Z]\w*)+\b|\[[^\[\]\n]{0,120}\]")
SENTENCE = re.compile(r"(?<=[.!?])\s+")
NUMBER_WORDS = {
    word: index
    for index, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
SPELLED = re.compile(rf"\b({'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)
MAX_SPANS = 64
MAX_GUESSES = 6


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a text or an identifier, lower case, plural s cut, stop words left out."""
    parts = WORD.findall(CAMEL.sub(" ", text.replace("_", " ")))
    lowered = (part.lower() for part in parts)
    return tuple(
        word[:-1] if len(word) > 3 and word.endswith("s") else word for word in lowered if word not in STOP_WORDS
    )


def rank_functions(catalog: Catalog, conversation: str) -> list[Guess]:
    """The catalog's functions by words shared with the conversation's end, likeliest first; confidences sum to 1."""
    count = len(catalog.functions)
    if count == 1:
        return [Guess(catalog.functions[0].name, 0.97, "lexical")]
    asked = _weights(conversation)
    vocabularies, frequency = _vocabularies(catalog)
    scores = []
    for vocabulary in vocabularies:
        shared = sum(
            weight * asked[word] * math.log(1 + count / frequency[word])
            for word, weight in vocabulary.items()
            if word in asked
        )
        scores.append(shared / (4 + math.sqrt(sum(vocabulary.values()))))
    top = max(scores, default=0.0)
    parts = [math.exp(2.5 * (score - top)) for score in scores]
    total = sum(parts)
    guesses = [
        Guess(function.name, part / total, "lexical") for function, part in zip(catalog.functions, parts, strict=True)
    ]
    return sorted(guesses, key=lambda guess: -guess.confidence)


def _weights(conversation: str) -> dict[str, float]:
    # The last message says what is wanted now; earlier ones count less the further back they are.
    lines = conversation[-4000:].split("\n")
    out: dict[str, float] = {}
    weight = 1.0
    for line in reversed(lines):
        # Several wishes in one message are met in their order: the first sentences say what is called now.
        for index, sentence in enumerate(SENTENCE.split(line)):
            for word in words(sentence):
                out[word] = max(out.get(word, 0.0), weight * max(0.8**index, 0.5))
        if line.startswith("user:"):
            weight *= 0.6
    return out


_known: OrderedDict[str, tuple[list[dict[str, float]], Counter[str]]] = OrderedDict()
MAX_CATALOGS = 256


def _vocabularies(catalog: Catalog) -> tuple[list[dict[str, float]], Counter[str]]:
    """Each function's words with their weights, and in how many functions a word occurs; kept by catalog id."""
    found = _known.get(catalog.id) if catalog.id else None
    if found is None:
        vocabularies = [_vocabulary(function) for function in catalog.functions]
        found = vocabularies, Counter(word for vocabulary in vocabularies for word in vocabulary)
        if catalog.id:
            _known[catalog.id] = found
            while len(_known) > MAX_CATALOGS:
                _known.popitem(last=False)
    return found


def _vocabulary(function: Function) -> dict[str, float]:
    out: dict[str, float] = {}
    for slot in function.slots:
        for word in (*words(slot.name), *words(slot.description[:120])):
            out[word] = max(out.get(word, 0.0), 0.6)
    for word in words(function.description[:400]):
        out[word] = max(out.get(word, 0.0), 1.0)
    for word in words(function.name):
        out[word] = 2.5
    return out


@dataclass(frozen=True)
class Span:
    """A stretch of the conversation that may be a value: its text, kind, and where it stands."""

    text: str
    kind: str
    start: int


class Spans:
    """The typed spans of one conversation, found once and asked for each slot."""

    def __init__(self, conversation: str) -> None:
        self._text = conversation[-4000:]
        self._last_turn = max(self._text.rfind("\nuser: "), 0)
        self._spans: list[Span] | None = None
        self._named_days: list[Day] | None = None
        self._named_times: list[str] | None = None

    def guesses(self, slot: Slot) -> list[Guess]:
        """Values for a slot, likeliest first, at most `MAX_GUESSES`."""
        if slot.options:
            return self._options(slot)
        if "boolean" in slot.types or "object" in slot.types:
            return []
        numeric = "integer" in slot.types or "number" in slot.types
        listed = "array" in slot.types
        wanted = set(words(slot.name)) | set(words(slot.description[:160]))
        name = set(words(slot.name))
        ranked: list[tuple[float, Span]] = []
        for span in self._all():
            score = self._fit(slot, span, numeric, wanted, name)
            if score > 0:
                ranked.append((score, span))
        ranked.sort(key=lambda item: -item[0])
        total = sum(score for score, _ in ranked[:6]) + 1.0
        out = self._moments(slot) if not numeric else []
        for score, span in ranked[:MAX_GUESSES]:
            value = _typed(span.text, slot)
            if value is not None:
                out.append(
                    Guess(
                        [value] if listed and not isinstance(value, list) else value,
                        0.8 * score / total,
                        "lexical",
                    )
                )
        return out

    def finish(self, slot: Slot | None, begun: str) -> Guess | None:
        """The rest of a string that begins with `begun`, from a date, a time or a span that begins so."""
        about = _about(slot) if slot is not None else ""
        if begun[:1].isdigit():
            dates = [text for day in self._days() for text in written(day, about, begun)]
            times = [text for time in self._times() for text in (time, time + ":00") if text.startswith(begun)]
            for text in (*dates, *times):
                if len(text) > len(begun):
                    return Guess(text[len(begun) :], 0.5, "lexical")
        low = begun.lower()
        fitting = [
            span.text for span in self._all() if len(span.text) > len(begun) and span.text.lower().startswith(low)
        ]
        return Guess(fitting[0][len(begun) :], 0.5 if len(fitting) == 1 else 0.35, "lexical") if fitting else None

    def _moments(self, slot: Slot) -> list[Guess]:
        about = _about(slot)
        out: list[Guess] = []
        if "date" in about or "day" in about:
            for index, day in enumerate(self._days()):
                sure = (0.7 if day.year else 0.35) / (1 + 0.5 * index)
                out.append(Guess(written(day, about)[0], sure, "lexical"))
        elif "time" in about:
            out += [Guess(time, 0.4 / (1 + index), "lexical") for index, time in enumerate(self._times())]
        return out

    def _days(self) -> list[Day]:
        if self._named_days is None:
            self._named_days = find_days(self._text)
        return self._named_days

    def _times(self) -> list[str]:
        if self._named_times is None:
            self._named_times = find_times(self._text)
        return self._named_times

    def _options(self, slot: Slot) -> list[Guess]:
        low = self._text.lower()
        found = [(low.rfind(str(option).lower().replace("_", " ")), option) for option in slot.options if str(option)]
        best = max(found, key=lambda item: item[0], default=(-1, None))
        return [Guess(best[1], 0.7, "lexical")] if best[0] >= 0 else []

    def _fit(self, slot: Slot, span: Span, numeric: bool, wanted: set[str], name: set[str]) -> float:
        kind = span.kind
        if numeric:
            base = {"number": 1.0, "spelled": 0.5}.get(kind, 0.0)
        else:
            about = _about(slot)
            base = {
                "spelled": 0.0,
                "quoted": 1.2,
                "proper": 0.7,
                "identifier": 0.5,
                "number": 0.15,
                "code": 0.4,
                "after": 1.4,
            }.get(kind, 0.3)
            if kind == "date":
                base = 2.5 if "date" in about or "time" in about else 0.1
            elif kind == "time":
                base = 1.5 if "time" in about and "date" not in about else 0.2
            elif kind == "email":
                base = 4.0 if "mail" in about else 0.2
            elif kind == "url":
                base = 4.0 if "url" in about or "link" in about or "uri" in about else 0.2
            elif kind == "number" and ("id" in name or "number" in about or "code" in name):
                base = 0.8
        if not base:
            return 0.0
        before = words(self._text[max(span.start - 48, 0) : span.start])
        near = len(wanted.intersection(before)) + 2 * len(name.intersection(before[-4:]))
        after = words(self._text[span.start + len(span.text) : span.start + len(span.text) + 20])
        near += len(name.intersection(after[:2]))
        recent = 1.0 if span.start >= self._last_turn else 0.55
        return base * recent * (1.0 + 0.8 * near)

    def _all(self) -> list[Span]:
        if self._spans is None:
            self._spans = self._find()
        return self._spans

    def _find(self) -> list[Span]:
        out: dict[tuple[str, str], Span] = {}
        covered: list[tuple[int, int]] = []

        def add(kind: str, pattern: re.Pattern[str], solid: bool = False) -> None:
            for match in pattern.finditer(self._text):
                group = next((index for index in range(1, pattern.groups + 1) if match.group(index)), 0)
                start, end = match.span(group)
                if any(low <= start < high for low, high in covered):
                    continue
                text = self._text[start:end].rstrip(".'")
                if kind == "proper" and (
                    text.lower() in STOP_WORDS
                    or self._text[start - 1 : start] in ("", "\n")
                    or self._opens_sentence(start, text)
                ):
                    continue
                out[kind, text] = Span(text, kind, start)
                if solid:
                    covered.append((start, end))

        for kind, pattern in (
            ("email", EMAIL),
            ("url", URL),
            ("date", DATE),
            ("time", TIME),
            ("quoted", QUOTED),
        ):
            add(kind, pattern, solid=True)
        add("number", NUMBER)
        add("number", NUMBER_UNIT)
        add("spelled", SPELLED)
        add("identifier", IDENTIFIER)
        add("code", CODE)
        add("proper", PROPER)
        return list(out.values())[-MAX_SPANS:]

    def _opens_sentence(self, start: int, text: str) -> bool:
        # "Find" in "user: Find ..." or after a full stop is capitalised for its place, not for what it is.
        before = self._text[max(start - 2, 0) : start]
        return " " not in text and (before in (": ", ". ", "? ", "! ") or before.endswith("\n"))


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
    if "array" in slot.types:
        items = slot.schema.get("items")
        of = items.get("type") if isinstance(items, dict) else None
        return _typed(text, Slot(slot.name, (str(of),))) if of in ("integer", "number") else text
    return text
