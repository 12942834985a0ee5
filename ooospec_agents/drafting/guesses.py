"""The dear guesses of one request, made ahead: they need no engine, and an engine step need not wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.functions import rank_functions
from ooospec_agents.drafting.sources.lexical import LexicalValues

MAX_NAMES = 16
"""Functions ranked, at most."""
LIKELY = 4
"""Functions whose values are guessed ahead, the likeliest; those of others are guessed when one is called."""
MAX_SLOTS = 32
"""Slots of a function whose values are guessed ahead, at most."""
MAX_VALUE_CHARS = 512


@dataclass(frozen=True)
class LexicalGuesses:
    """What `rank_functions` and `LexicalValues` say of one request.

    Attributes:
        names: Functions, likeliest first.
        values: Values by function and slot, likeliest first.
    """

    names: tuple[Guess, ...]
    values: Mapping[tuple[str, str], tuple[Guess, ...]]

    @classmethod
    def of(cls, catalog: Catalog, conversation: str) -> LexicalGuesses:
        """Guess: a millisecond's work, or a few."""
        lexical = LexicalValues(conversation)
        names = tuple(rank_functions(catalog, conversation, lexical.fit)[:MAX_NAMES])
        values = {}
        for guess in names[:LIKELY]:
            function = catalog.function(guess.value)
            for slot in function.slots[:MAX_SLOTS] if function is not None else ():
                found = lexical.guesses(slot, function)
                values[guess.value, slot.name] = tuple(g for g in found if len(str(g.value)) <= MAX_VALUE_CHARS)
        return cls(names, values)

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


def _read(found: Any) -> tuple[Guess, ...]:
    return tuple(Guess(value, float(confidence), str(source)) for value, confidence, source in found)
