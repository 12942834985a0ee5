"""The function by words that the conversation shares with the catalog."""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict
from functools import lru_cache

from ooospec_agents.catalog import Catalog, Function
from ooospec_agents.drafting.sources import Guess

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
STOP_WORDS = frozenset(
    """
    a an and are as at be by can could do for from get give has have how i in is it like me my need of
    on or please set so some tell that the their then this to use user using want was what when which
    will with would you your
    """.split()
)
SENTENCE = re.compile(r"(?<=[.!?])\s+")
MAX_TEXT = 4000
"""Characters of the conversation's end that are compared."""
SHARPNESS = 5.0
"""How much likelier a function is for more words shared; fitted to calls of functions that are not measured."""
MAX_CATALOGS = 256


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a text or an identifier, lower case, plural s cut, stop words left out."""
    lowered = map(str.lower, WORD.findall(text))
    return tuple(
        [word[:-1] if len(word) > 3 and word[-1] == "s" else word for word in lowered if word not in STOP_WORDS]
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
    parts = [math.exp(SHARPNESS * (score - top)) for score in scores]
    total = sum(parts)
    guesses = [
        Guess(function.name, part / total, "lexical") for function, part in zip(catalog.functions, parts, strict=True)
    ]
    return sorted(guesses, key=lambda guess: -guess.confidence)


def _weights(conversation: str) -> dict[str, float]:
    # The last message says what is wanted now; earlier ones count less the further back they are.
    lines = conversation[-MAX_TEXT:].split("\n")
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
