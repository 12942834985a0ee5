"""A conversation, read for values: its spans, and what stands around each."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ooospec_agents.drafting.sources.lists import find_lists
from ooospec_agents.drafting.sources.phrases import KINDS, WHOLE, find_answers, find_phrases
from ooospec_agents.drafting.sources.shared_words import WORD, words
from ooospec_agents.drafting.sources.spans import Covered, Span, find_spans, moments_in
from ooospec_agents.drafting.sources.turns import Turn, sentences, turns

MAX_TEXT = 4000
"""Characters of the conversation's end that are searched."""
MAX_SPANS, MAX_PHRASES = 96, 48
BEFORE, AFTER = 60, 24
"""Characters around a span in which a parameter's words are looked for."""
MAX_BEFORE, MAX_AFTER = 10, 2
"""Words of them."""
ROLES = frozenset({"user", "assistant", "tool"})
MOMENTS = frozenset({"date", "time", "day", "day without year", "day as said", "clock"})
PREPOSITION = re.compile(
    r"\b(in|at|from|to|for|by|of|with|on|named|called|is|id|as|about|and|between|near|titled|into|using|via|against|"
    r"than|was|are)(?: (?:the|a|an|my|our))?[ :]+['\"“`]?$",
    re.IGNORECASE,
)
KEY_BEFORE = frozenset("\"'[: ")
KEY = re.compile(r"[\"'](\w{1,64})[\"']\s{0,4}:\s{0,4}[\"'\[]{0,2}$")
KEY_ENDS = re.compile(r"[\"']\s{0,4}:")
LONGEST_ACRONYM = 4
MAX_PREPOSITION = 24
QUESTIONS = 2
"""Sentences at a message's end that may ask for what the next one says."""


@dataclass(slots=True)
class Place:
    """A span and what stands around it.

    Attributes:
        span: The span.
        turn: Index of its message.
        role: Who speaks there.
        age: How many messages of the user follow.
        rank: How many spans of its kind its message has before it.
        sentence: Index of its sentence among the message's.
        said: Words of that sentence.
        before: Words before it in its sentence, the nearest first.
        near: How many of them stand between it and the span before it.
        after: Words after it.
        preposition: The word just before it, if it is one that says what follows; "start" where the message begins.
        key: The key of which it is the JSON value, or "".
        flags: What else may be seen of it.
    """

    span: Span
    turn: int
    role: str
    age: int
    rank: int
    sentence: int
    said: frozenset[str]
    before: tuple[str, ...]
    near: int
    after: tuple[str, ...]
    preposition: str
    key: str
    flags: tuple[str, ...]


class Reading:
    """One conversation; it is read when that is first needed.

    Args:
        conversation: The messages as text, newest last.

    Attributes:
        text: The end of it that is searched.
    """

    def __init__(self, conversation: str) -> None:
        self.text = conversation[-MAX_TEXT:]

    @cached_property
    def turns(self) -> list[Turn]:
        """Its messages."""
        return turns(self.text)

    @cached_property
    def last(self) -> int:
        """Index of the user's last message, or of the last one where no user speaks."""
        said = [at for at, turn in enumerate(self.turns) if turn.role == "user"]
        return said[-1] if said else len(self.turns) - 1

    @cached_property
    def places(self) -> list[Place]:
        """The spans in the order of the text, those of phrases and answers after all others."""
        found, covered = find_spans(self.text)
        found = sorted(found, key=lambda span: span.start)[-MAX_SPANS:]
        taken = {(span.start, span.end) for span in found}
        phrases = sorted(find_phrases(self.text, self.turns, self.last, covered, taken), key=lambda span: span.start)
        lists = find_lists(self.text, found)
        answers = find_answers(self.text, self.turns, self.last)
        return self._placed(found, [*phrases[-MAX_PHRASES:], *answers, *lists])

    @cached_property
    def clocks(self) -> list[tuple[int, str]]:
        """Clock times, as HH:MM, and where they stand."""
        times = (place.span for place in self.places if "inside moment" not in place.flags)
        return [
            (span.start, span.text.rjust(5, "0"))
            for span in times
            if span.kind == "clock" or (span.kind == "time" and span.text.count(":") == 1)
        ]

    @cached_property
    def asked(self) -> dict[int, tuple[frozenset[str], int]]:
        """Of each message of the user that follows a question: the question's words, and the answer's length."""
        out = {}
        for at, (before, turn) in enumerate(zip(self.turns, self.turns[1:], strict=False), 1):
            if turn.role == "user" and before.role == "assistant":
                ends = [place for place in sentences(self.text, before.start, before.end) if place[0] < place[1]]
                question = " ".join(self.text[start:end] for start, end in ends[-QUESTIONS:])
                out[at] = frozenset(words(question)), turn.end - turn.start
        return out

    @cached_property
    def words(self) -> frozenset[str]:
        """All its words."""
        return frozenset(words(self.text))

    def _placed(self, solid: Sequence[Span], others: Sequence[Span]) -> list[Place]:
        starts = [turn.start for turn in self.turns]
        users = [turn.role == "user" for turn in self.turns]
        later = [sum(users) - done for done in accumulate(users)]
        tokens, moments = Tokens(self.text), moments_in(self.text)
        ends = sorted(span.end for span in solid)
        ranks: Counter[tuple[str, int]] = Counter()
        said: dict[int, tuple[list[int], list[frozenset[str]]]] = {}
        out = []
        for span in (*solid, *others):
            at = max(bisect_right(starts, span.start) - 1, 0)
            turn = self.turns[at]
            if at not in said:
                found = sentences(self.text, turn.start, turn.end)
                said[at] = [start for start, _ in found], [frozenset(tokens.between(*one)) for one in found]
            begins, spoken = said[at]
            sentence = max(bisect_right(begins, span.start) - 1, 0)
            low = max(begins[sentence], span.start - BEFORE)
            index = bisect_right(ends, span.start) - 1
            before = tokens.between(low, span.start)[: -MAX_BEFORE - 1 : -1]
            out.append(
                Place(
                    span=span,
                    turn=at,
                    role=turn.role if turn.role in ROLES else "other",
                    age=later[at],
                    rank=ranks[span.kind, at],
                    sentence=sentence,
                    said=spoken[sentence],
                    before=tuple(before),
                    near=tokens.count(max(ends[index] if index >= 0 else 0, low), span.start),
                    after=tuple(tokens.between(span.end, self._line_end(span.end))[:MAX_AFTER]),
                    preposition="start" if span.start <= turn.start + 1 else self._preposition(span.start, low),
                    key=self._key(span.start),
                    flags=tuple(self._flags(span, moments)),
                )
            )
            ranks[span.kind, at] += 1
        return out

    def _line_end(self, start: int) -> int:
        end = self.text.find("\n", start, start + AFTER)
        return start + AFTER if end < 0 else end

    def _preposition(self, start: int, low: int) -> str:
        match = PREPOSITION.search(self.text[max(low, start - MAX_PREPOSITION) : start])
        return match[1].lower() if match else ""

    def _key(self, start: int) -> str:
        if self.text[start - 1 : start] not in KEY_BEFORE:
            return ""
        match = KEY.search(self.text[max(start - BEFORE, 0) : start])
        return match[1] if match else ""

    def _flags(self, span: Span, moments: Covered) -> Iterator[str]:
        text, kind = span.text, span.kind
        if span.start in moments and kind not in MOMENTS and kind not in WHOLE:
            yield "inside moment"
        if KEY_ENDS.match(self.text, span.end):
            yield "json key"
        if "{" in text:
            yield "json"
        if len(text) <= LONGEST_ACRONYM and text.isalpha() and text.isupper():
            yield "acronym"
        if kind == "quoted" and text == text.lower():
            yield "quoted lower"


class Tokens:
    """The words of a text and where they begin; stop words are left out.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        found = [(match.start(), words(match[0])) for match in WORD.finditer(text)]
        kept = [(start, word[0]) for start, word in found if word]
        self._starts = [start for start, _ in kept]
        self._words = [word for _, word in kept]

    def between(self, start: int, end: int) -> list[str]:
        """The words that begin in a stretch of the text."""
        return self._words[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def count(self, start: int, end: int) -> int:
        """How many words begin in a stretch of the text."""
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)


def is_phrase(kind: str) -> bool:
    """Whether a span of this kind is a phrase, which many stretches of a text are."""
    return kind in KINDS


def is_solid(span: Span) -> bool:
    """Whether a span is a text by itself: no phrase, no answer, no day."""
    return span.day is None and span.value is None and span.kind not in KINDS and span.kind not in WHOLE
