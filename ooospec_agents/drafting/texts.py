"""Text outside calls: how far what stood elsewhere is followed, and what announces a call."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.copying import SURER

WORD = re.compile(r"\s*\S+")
NEXT_WORD = 0.88
"""Probability that copied text goes on for one more word, at most."""
ANNOUNCES, ANNOUNCED = ":\n\n", 0.6
"""Text that a call follows ("I will call it:"), and the probability that it does."""


def word_by_word(guess: Guess) -> Iterator[tuple[str, float]]:
    """The words of a guess, each with the probability that it follows: the more have agreed, the surer the next."""
    sure = guess.confidence
    for word in WORD.findall(guess.value):
        yield word, sure
        sure = min(sure + SURER * len(word), NEXT_WORD)
