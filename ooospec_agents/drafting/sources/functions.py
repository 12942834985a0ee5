"""The function that is called next, by what the conversation shares with the catalog and says of its values.

A conditional logit over a request's functions: each has a few features, counts of shared words for the most part, and
the weights are the same for all functions (`function_weights.json`, fitted by `ooospec_agents.training.functions` to
calls of functions that no evaluation set knows).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from ooospec_agents.catalog import Catalog, Function
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.shared_words import stem, words
from ooospec_agents.drafting.sources.span_fit import SpanFit
from ooospec_agents.drafting.sources.turns import SENTENCE, turns

BY_WORDS = (
    "name early",
    "name anywhere",
    "name before",
    "description early",
    "description",
    "description before",
    "parameters",
    "parameters before",
    "their descriptions",
    "their descriptions before",
)
"""Features that are 0 where no word is shared."""
BY_CATALOG = (
    *BY_WORDS,
    "stems of the name",
    "deed",
    "option",
    "number missing",
    "required",
)
BY_VALUES = ("values found", "value said last")
FEATURES = (*BY_CATALOG, *BY_VALUES)
"""What is known of a function beside a conversation.

"early" counts words of the last user message by how early its sentence comes: several wishes are met in their order.
"before" counts words of earlier user messages, by how late they come. Words weigh the more, the fewer functions have
them. "deed": the first verb of the user's newest message that has one is of the function's kind. "option": one of its
options is written in the last one. "number missing": required numbers, where the user wrote none. "required": its
required parameters. "values found" and "value said last" are what `SpanFit.suits` says. What was called before is no
feature: some agents do nothing twice, others little else.
"""
LOOKED_AT, MOST_SLOTS = 8, 48
"""Functions whose values are looked for, the likeliest of many, and parameters that they have together."""
ONLY = 0.97
"""Probability of a function that is the only one."""
MAX_TEXT = 4000
"""Characters of the conversation's end that are compared."""
MAX_CATALOGS = 256
MAX_DESCRIPTION, MAX_SLOT_DESCRIPTION = 400, 120
"""Characters of a description that are compared."""
SOONER, EARLIEST = 0.7, 0.1
"""Weight of a sentence's words beside those of the one before it, at the least."""
OLDER = 0.6
"""Weight of a user message's words beside those of the next."""
MOST_REQUIRED, MOST_NUMBERS = 6, 3
SHORTEST_OPTION = 3
SHORT_FORM = 4
"""Letters of a word's short form."""
OPENING_WORDS = 3
"""Words of a description in which its verb is looked for."""
LETTERS = re.compile(r"[a-z]+")
HUMP = re.compile(r"([a-z])([A-Z])")
DIGIT = re.compile(r"\d")
DEEDS: Mapping[str, int] = {
    word: kind
    for kind, line in enumerate(
        (
            "get fetch retrieve query find search look check show list view see know tell provide give what display",
            "add create register book open new schedule make set insert post plan record start",
            "cancel delete remove drop close clear",
            "modify update change edit reschedule move reset adjust",
            "calculate compute convert much total sum solve determine estimate",
            "send mail email forward share message notify",
            "recommend suggest suggestion best",
        )
    )
    for word in line.split()
}
"""Kinds of verbs, and of words that ask for such a deed."""


class Part(NamedTuple):
    """Words of one part of a function: its name, its description, its parameters' names or descriptions."""

    words: frozenset[str]
    length: float


class Known(NamedTuple):
    """What is compared of one function."""

    words: frozenset[str]
    name: Part
    description: Part
    slots: Part
    slot_descriptions: Part
    stems: Mapping[str, str]
    deeds: frozenset[int]
    options: tuple[str, ...]
    numbers: int
    required: int


@dataclass
class Asked:
    """What is compared of one conversation.

    Attributes:
        early: Words of the last user message; the later its sentence, the less they weigh.
        before: Words of earlier user messages; the older, the less they weigh.
        stems: Stems of the last message's words.
        openings: How its long words begin: "info" stands for "information".
        text: That message in lower case.
        deed: The first kind of verb in it, or in the newest message of the user that has one; -1 where none has.
        number: Whether the user has written a number.
    """

    early: dict[str, float] = field(default_factory=dict)
    before: dict[str, float] = field(default_factory=dict)
    stems: frozenset[str] = frozenset()
    openings: frozenset[str] = frozenset()
    text: str = ""
    deed: int = -1
    number: bool = False


def rank_functions(catalog: Catalog, conversation: str, fit: SpanFit | None = None) -> list[Guess]:
    """The catalog's functions, likeliest first; their confidences sum to 1, but for an only one.

    Args:
        catalog: The functions.
        conversation: The messages as text, newest last.
        fit: The same conversation, as far as it was read for values; None reads it anew.
    """
    if len(catalog.functions) == 1:
        return [Guess(catalog.functions[0].name, ONLY, "lexical")]
    scores = [sum(map(mul, WEIGHTS, row)) for row in by_catalog(catalog, conversation)]
    fit = fit or SpanFit(conversation)
    for at in _looked_at(catalog, scores):
        scores[at] += sum(map(mul, WEIGHTS[len(BY_CATALOG) :], fit.suits(catalog.functions[at])))
    top = max(scores, default=0.0)
    parts = [math.exp(score - top) for score in scores]
    total = sum(parts)
    guesses = [
        Guess(function.name, part / total, "lexical") for function, part in zip(catalog.functions, parts, strict=True)
    ]
    return sorted(guesses, key=lambda guess: -guess.confidence)


def features(catalog: Catalog, conversation: str) -> list[list[float]]:
    """A row of `FEATURES` for each function of the catalog."""
    fit, rows = SpanFit(conversation), by_catalog(catalog, conversation)
    return [[*row, *fit.suits(function)] for row, function in zip(rows, catalog.functions, strict=True)]


def by_catalog(catalog: Catalog, conversation: str) -> list[list[float]]:
    """A row of `BY_CATALOG` for each function of the catalog."""
    known, rarity = _known_of(catalog)
    asked = _asked(conversation)
    return [_row(one, rarity, asked) for one in known]


def _looked_at(catalog: Catalog, scores: Sequence[float]) -> list[int]:
    """Indexes of the functions whose values are looked for: those that may come to be first by them."""
    least = max(scores, default=0.0) - sum(WEIGHTS[len(BY_CATALOG) :])
    likeliest = sorted((at for at in range(len(scores)) if scores[at] >= least), key=lambda at: -scores[at])[:LOOKED_AT]
    together = list(accumulate(len(catalog.functions[at].slots) for at in likeliest))
    return [at for at, slots in zip(likeliest, together, strict=True) if slots <= MOST_SLOTS]


def _row(known: Known, rarity: Mapping[str, float], asked: Asked) -> list[float]:
    early, before = asked.early, asked.before
    shared = {word: rarity[word] for word in known.words if word in early or word in before}

    def share(part: Part, weights: Mapping[str, float]) -> float:
        return sum([rare * weights.get(word, 0.0) for word, rare in shared.items() if word in part.words]) / part.length

    def plain(part: Part) -> float:
        return sum([rare for word, rare in shared.items() if word in part.words and word in early]) / part.length

    anywhere = [
        rare * max(early.get(word, 0.0), OLDER * before.get(word, 0.0))
        for word, rare in shared.items()
        if word in known.name.words
    ]
    stems = [
        rarity[word]
        for word, its in known.stems.items()
        if word not in early and (its in asked.stems or word in asked.openings)
    ]
    by_words = [0.0] * len(BY_WORDS)
    if shared:
        by_words = [
            share(known.name, early),
            sum(anywhere) / known.name.length,
            share(known.name, before),
            share(known.description, early),
            plain(known.description),
            share(known.description, before),
            plain(known.slots),
            share(known.slots, before),
            plain(known.slot_descriptions),
            share(known.slot_descriptions, before),
        ]
    return [
        *by_words,
        sum(stems) / known.name.length,
        float(asked.deed in known.deeds),
        float(any(option in asked.text for option in known.options)),
        0.0 if asked.number else float(known.numbers),
        float(known.required),
    ]


def _asked(conversation: str) -> Asked:
    text = conversation[-MAX_TEXT:]
    messages = [(turn.role, text[turn.start : turn.end]) for turn in turns(text)]
    said = [at for at, (role, _) in enumerate(messages) if role == "user"]
    last = said[-1] if said else len(messages) - 1
    asked = Asked(text=messages[last][1].lower())
    for index, sentence in enumerate(SENTENCE.split(messages[last][1])):
        for word in words(sentence):
            asked.early.setdefault(word, max(SOONER**index, EARLIEST))
    earlier = [messages[at][1] for at in reversed(said[:-1])]
    for age, text in enumerate(earlier):
        for sentence in SENTENCE.split(text):  # as above: a sentence's words are kept, and may be asked for again
            for word in words(sentence):
                asked.before.setdefault(word, OLDER**age)
    asked.stems = frozenset(map(stem, asked.early))
    asked.openings = frozenset(word[:SHORT_FORM] for word in asked.early if len(word) > SHORT_FORM + 1)
    lowered = (asked.text, *map(str.lower, earlier))
    asked.deed = next((DEEDS[word] for text in lowered for word in LETTERS.findall(text) if word in DEEDS), -1)
    asked.number = any(map(DIGIT.search, (asked.text, *earlier)))
    return asked


_known: OrderedDict[str, tuple[list[Known], dict[str, float]]] = OrderedDict()


def _known_of(catalog: Catalog) -> tuple[list[Known], dict[str, float]]:
    """What is compared of each function, and how much a word weighs; kept by catalog id."""
    found = _known.get(catalog.id) if catalog.id else None
    if found is None:
        split = [_parts(function) for function in catalog.functions]
        counts = Counter(word for parts in split for word in frozenset().union(*parts))
        rarity = {word: math.log(1 + len(split) / count) for word, count in counts.items()}
        functions = zip(catalog.functions, split, strict=True)
        found = [_known_function(function, parts, rarity) for function, parts in functions], rarity
        if catalog.id:
            _known[catalog.id] = found
            while len(_known) > MAX_CATALOGS:
                _known.popitem(last=False)
    return found


def _parts(function: Function) -> tuple[frozenset[str], ...]:
    """Words of a function's name, of its description, of its parameters' names and of what describes these."""
    slots = frozenset(word for slot in function.slots for word in words(slot.name))
    described = frozenset(word for slot in function.slots for word in words(slot.description[:MAX_SLOT_DESCRIPTION]))
    return (
        frozenset(words(function.name)),
        frozenset(words(function.description[:MAX_DESCRIPTION])),
        slots,
        described - slots,
    )


def _known_function(function: Function, parts: tuple[frozenset[str], ...], rarity: Mapping[str, float]) -> Known:
    name, description, slots, described = parts
    required = [slot for slot in function.slots if slot.required]
    written = [str(option).lower() for slot in function.slots for option in slot.options]
    return Known(
        words=name | description | slots | described,
        name=Part(name, sum(rarity[word] for word in name) or 1.0),
        description=Part(description, 4 + math.sqrt(len(description))),
        slots=Part(slots, 2 + math.sqrt(len(slots))),
        slot_descriptions=Part(described, 4 + math.sqrt(len(described))),
        stems={word: stem(word) for word in name},
        deeds=_deeds(function),
        options=tuple(option for option in written if len(option) >= SHORTEST_OPTION),
        numbers=min(sum(not {"integer", "number"}.isdisjoint(slot.types) for slot in required), MOST_NUMBERS),
        required=min(len(required), MOST_REQUIRED),
    )


def _deeds(function: Function) -> frozenset[int]:
    """Kinds of the verbs in a function's name; of the first in its description where its name has none."""
    named = _kinds(LETTERS.findall(HUMP.sub(r"\1 \2", function.name).lower()))
    opening = LETTERS.findall(function.description[:MAX_DESCRIPTION].lower())[:OPENING_WORDS]
    forms = [form for word in opening for form in (word, word.removesuffix("s"))]
    return frozenset(named or _kinds(forms)[:1])


def _kinds(found: Iterable[str]) -> list[int]:
    return [DEEDS[word] for word in found if word in DEEDS]


def _weights() -> tuple[float, ...]:
    text = (resources.files(__package__) / "function_weights.json").read_text(encoding="utf-8")
    weights = json.loads(text)["weights"]
    return tuple(float(weights[name]) for name in FEATURES)


WEIGHTS = _weights()
