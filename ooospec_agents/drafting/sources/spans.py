"""Stretches of a conversation that look like values: numbers, dates, quotations, names, codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ooospec_agents.drafting.sources.dates import Day, find_days, find_times
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
OPERATOR = re.compile(r"(?<=[\d)])\s*([-+*/^])\s*")
NUMBER_WORDS = {
    word: index
    for index, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
SPELLED = re.compile(rf"\b({'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)
MAX_SPANS = 64
MAX_TEXT = 4000
"""Characters of the conversation's end that are searched."""
BEFORE, AFTER = 48, 20
"""Characters around a span in which a parameter's words are looked for."""
EARLIER = 0.55
"""What a span of an earlier turn is worth, where one of the last turn is worth 1."""
CLOSE = 4
"""Words before a span that are close to it."""
SOLID = (("email", EMAIL), ("url", URL), ("date", DATE), ("time", TIME), ("quoted", QUOTED))
"""Kinds in which no other kind is looked for."""
NUMBERS = (("number", NUMBER), ("number", NUMBER_UNIT), ("spelled", SPELLED))
NAMES = (("identifier", IDENTIFIER), ("code", CODE), ("proper", PROPER))


@dataclass
class Span:
    """A stretch of the conversation that may be a value.

    Attributes:
        text: What stands there.
        kind: What it looks like.
        recent: Whether it stands in the last turn.
        beside: Text before it and after it.
    """

    text: str
    kind: str
    recent: bool
    beside: tuple[str, str]

    @cached_property
    def before(self) -> tuple[str, ...]:
        """Words before it."""
        return words(self.beside[0])

    @cached_property
    def after(self) -> tuple[str, ...]:
        """Words after it."""
        return words(self.beside[1])[:2]


class Beside:
    """Which spans stand beside which words: asked once a slot, where each span would be asked otherwise.

    Args:
        spans: The spans; each is named by its place among them.

    Attributes:
        spans: The same.
        kinds: Their kinds.
        weights: Of each span its kind, and what it is worth for its turn.
    """

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = spans
        self.kinds = {span.kind for span in spans}
        self.weights = [(span.kind, 1.0 if span.recent else EARLIER) for span in spans]
        self._before: dict[str, list[int]] = {}
        self._close: dict[str, list[int]] = {}
        for at, span in enumerate(spans):
            for word in set(span.before):
                self._before.setdefault(word, []).append(at)
            for word in [*set(span.before[-CLOSE:])] * 2 + [*set(span.after)]:
                self._close.setdefault(word, []).append(at)

    def near(self, wanted: set[str], name: set[str]) -> dict[int, int]:
        """How many words stand beside each span; a span beside none of them is left out.

        Args:
            wanted: Words that count before a span.
            name: Those of them that count again close to it: twice just before, once just after.
        """
        out: dict[int, int] = {}
        for index, asked in ((self._before, wanted), (self._close, name)):
            for word in asked:
                for at in index.get(word, ()):
                    out[at] = out.get(at, 0) + 1
        return out


class Spans:
    """The spans of one conversation; each kind is looked for when it is first asked for.

    Args:
        conversation: The messages as text, newest last.
    """

    def __init__(self, conversation: str) -> None:
        self.text = conversation[-MAX_TEXT:]
        self._last_turn = max(self.text.rfind("\nuser: "), 0)

    def find_all(self) -> None:
        """Look for every kind."""
        _ = self.beside_numbers, self.beside_texts, self.lowered, self.days, self.times, self.formulas

    @cached_property
    def numbers(self) -> list[Span]:
        """Numbers, in digits and in words."""
        return self._find(NUMBERS)

    @cached_property
    def texts(self) -> list[Span]:
        """All that may be a string, numbers included."""
        return [*self._solid, *self.numbers, *self._find(NAMES)][-MAX_SPANS:]

    @cached_property
    def lowered(self) -> list[tuple[str, str]]:
        """Of each of `texts` its text in lower case, and as it stands."""
        return [(span.text.lower(), span.text) for span in self.texts]

    @cached_property
    def beside_numbers(self) -> Beside:
        """Words beside `numbers`."""
        return Beside(self.numbers)

    @cached_property
    def beside_texts(self) -> Beside:
        """Words beside `texts`."""
        return Beside(self.texts)

    @cached_property
    def formulas(self) -> list[str]:
        """Numbers to be computed with, the latest first."""
        found = [match[0].rstrip(".") for match in FORMULA.finditer(self.text)][::-1]
        # A dash or a slash alone may be a date's, a range's or a code's.
        return [formula for formula in found if re.search(r"[+*^(]|\s[-/]\s", formula)]

    @cached_property
    def days(self) -> list[Day]:
        """Days named in prose."""
        return find_days(self.text)

    @cached_property
    def times(self) -> list[str]:
        """Clock times named in prose, as HH:MM."""
        return find_times(self.text)

    @cached_property
    def _solid(self) -> list[Span]:
        return self._find(SOLID, solid=True)

    @cached_property
    def _covered(self) -> list[tuple[int, int]]:
        return []

    def _find(self, kinds: tuple[tuple[str, re.Pattern[str]], ...], solid: bool = False) -> list[Span]:
        covered = self._covered
        if not solid:
            _ = self._solid  # what it covers must be known
        out: dict[tuple[str, str], Span] = {}
        for kind, pattern in kinds:
            for start, end in _matches(pattern, self.text):
                if any(low <= start < high for low, high in covered):
                    continue
                text = self.text[start:end].rstrip(".'")
                if kind != "proper" or not self._is_ordinary(start, text):
                    out[kind, text] = self._span(kind, text, start)
                    if solid:
                        covered.append((start, end))
        return list(out.values())

    def _span(self, kind: str, text: str, start: int) -> Span:
        end = start + len(text)
        beside = self.text[max(start - BEFORE, 0) : start], self.text[end : end + AFTER]
        return Span(text, kind, start >= self._last_turn, beside)

    def _is_ordinary(self, start: int, text: str) -> bool:
        # "Find" in "user: Find ..." or after a full stop is capitalised for its place, not for what it is.
        if text.lower() in STOP_WORDS or self.text[start - 1 : start] in ("", "\n"):
            return True
        before = self.text[max(start - 2, 0) : start]
        return " " not in text and (before in (": ", ". ", "? ", "! ") or before.endswith("\n"))


def spaced(formula: str) -> str:
    """A formula with a space on both sides of each operator, as models write it."""
    return OPERATOR.sub(r" \1 ", formula)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    for match in pattern.finditer(text):
        group = next((index for index in range(1, pattern.groups + 1) if match.group(index)), 0)
        yield match.span(group)
