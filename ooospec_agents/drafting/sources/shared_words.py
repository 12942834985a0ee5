"""Words: of a conversation, of a description, of an identifier."""

from __future__ import annotations

import re
from functools import lru_cache

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
STOP_WORDS = frozenset(
    """
    a an and are as at be by can could do for from get give has have how i in is it like me my need of
    on or please set so some tell that the their then this to use user using want was what when which
    will with would you your
    """.split()
)
ENDINGS = ("ation", "ing", "ion", "ed", "er", "or", "es", "ly", "al", "e")
SHORTEST_STEM = 4


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a text or an identifier, lower case, plural s cut, stop words left out."""
    lowered = map(str.lower, WORD.findall(text))
    return tuple(
        [word[:-1] if len(word) > 3 and word[-1] == "s" else word for word in lowered if word not in STOP_WORDS]
    )


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A word without its ending: "conversion" and "converse" have the same."""
    ending = next((end for end in ENDINGS if word.endswith(end) and len(word) - len(end) >= SHORTEST_STEM), "")
    return word.removesuffix(ending)
