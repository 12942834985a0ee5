"""The dear guesses of one request, made ahead: they need no engine, and an engine step need not wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ooospec_agents.catalog import Catalog, inner_slots
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.functions import rank_functions
from ooospec_agents.drafting.sources.lexical import LexicalValues

MAX_NAMES = 16
"""Functions ranked, at most."""
LIKELY = 4
"""Functions whose values come first, the likeliest."""
AT_ONCE = 4
"""Functions whose values are guessed in one go after them."""
MAX_FUNCTIONS = 128
"""Functions whose values are guessed ahead, at most; those of others are guessed when one is called."""
MAX_SLOTS = 32
"""Slots of a function whose values are guessed ahead, at most."""
MAX_VALUE_CHARS = 512

Values = dict[tuple[str, str], tuple[Guess, ...]]
"""Values by function and slot, or path inside a slot (such as "items[].name"); likeliest first."""


@dataclass(frozen=True)
class LexicalGuesses:
    """What `rank_functions` and `LexicalValues` say of one request.

    Attributes:
        names: Functions, likeliest first.
        values: Values of those functions that have been looked at so far.
    """

    names: tuple[Guess, ...]
    values: Values

    @classmethod
    def of(cls, catalog: Catalog, conversation: str) -> LexicalGuesses:
        """The first guesses: a millisecond's work, or a few."""
        return Guesser(catalog, conversation).first()

    def add(self, more: LexicalGuesses) -> None:
        """Take in values that were guessed later, for all who hold these guesses."""
        self.values.update(more.values)

    def to_data(self) -> dict[str, Any]:
        """As JSON-able data; `from_data` reads it back."""
        return {
            "names": list(map(list, self.names)),
            "values": [[name, slot, list(map(list, found))] for (name, slot), found in self.values.items()],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> LexicalGuesses:
        """Read what `to_data` wrote.

        Raises:
            KeyError, TypeError, ValueError: The data has another form.
        """
        values = {(str(name), str(slot)): _read(found) for name, slot, found in data["values"]}
        return cls(_read(data["names"]), values)


def _short(found: list[Guess]) -> tuple[Guess, ...]:
    return tuple(guess for guess in found if len(str(guess.value)) <= MAX_VALUE_CHARS)


def _read(found: Any) -> tuple[Guess, ...]:
    return tuple(Guess(value, float(confidence), str(source)) for value, confidence, source in found)


class Guesser:
    """Makes the guesses of one request, those of the likeliest functions first.

    Args:
        catalog: The functions.
        conversation: The messages as text, newest last.
    """

    def __init__(self, catalog: Catalog, conversation: str) -> None:
        self._catalog = catalog
        self._conversation = conversation
        self._left: list[str] = []

    def first(self) -> LexicalGuesses:
        """The functions, and the values of the likeliest."""
        self._lexical = LexicalValues(self._conversation)
        ranked = rank_functions(self._catalog, self._conversation, self._lexical.fit)
        self._left = [str(guess.value) for guess in ranked[:MAX_FUNCTIONS]]
        return LexicalGuesses(tuple(ranked[:MAX_NAMES]), self._next(LIKELY))

    def further(self) -> LexicalGuesses | None:
        """The values of the next few functions, once the first guesses are made; None: all have been looked at."""
        return LexicalGuesses((), self._next(AT_ONCE)) if self._left else None

    def all(self) -> LexicalGuesses:
        """The first guesses, and all further ones added to them."""
        guesses = self.first()
        while (more := self.further()) is not None:
            guesses.add(more)
        return guesses

    def _next(self, count: int) -> Values:
        now, self._left = self._left[:count], self._left[count:]
        values: Values = {}
        for name in now:
            function = self._catalog.function(name)
            for slot in function.slots[:MAX_SLOTS] if function is not None else ():
                values[name, slot.name] = _short(self._lexical.guesses(slot, function))
                for path, inner in inner_slots(slot):
                    values[name, slot.name + path] = _short(self._lexical.guesses(inner))
        return values
