"""A slot as a value is looked for that suits it: what it is about, and how it stands among its function's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from ooospec_agents.catalog import Function, Slot
from ooospec_agents.drafting.sources.codes import codes_for
from ooospec_agents.drafting.sources.dates import LAST, WITH_TIME
from ooospec_agents.drafting.sources.shared_words import words

MAX_ABOUT = 160
"""Characters of a slot's description that are compared."""
FORMAT = re.compile(r"yyyy|iso|format|%[ymd]|dd/")
FIRST = re.compile(r"start|from|begin|check_?in|depart", re.IGNORECASE)
CLOSED = frozenset({"option", "boolean"})
"""Classes of slots whose values are known beforehand."""
NESTED = frozenset({"array", "object"})
NUMERIC = frozenset({"integer", "number"})
NAMED: Mapping[str, frozenset[str]] = {
    name: frozenset(line.split())
    for name, line in {
        "secret": "password token id key code number username uuid hash",
        "place": "location city address country place destination origin region state departure",
        "text": "query question message content text description keyword title topic body search comment prompt",
        "name": "name",
    }.items()
}
"""Classes of slots by words of their names; the first that has one."""


def about(slot: Slot) -> str:
    """A slot's name, description and format, lower case."""
    return f"{slot.name} {slot.description[:MAX_ABOUT]} {slot.schema.get('format', '')}".lower()


def wants_last(slot: Slot) -> bool:
    """Whether a slot is the later of two moments."""
    return LAST.search(slot.name) is not None


def class_of(slot: Slot, said: str) -> str:
    """What a slot is about, as far as slots are told apart.

    Args:
        slot: The slot.
        said: What `about` says of it.
    """
    if slot.options:
        return "option"
    for kind in ("boolean", "array", "object", "integer", "number"):
        if kind in slot.types:
            return kind
    name = set(words(slot.name))
    if WITH_TIME.search(said):
        return "moment"
    if "date" in said and ("date" in name or "day" in name or "yyyy" in said):
        return "date"
    if "time" in name or ("time" in said and "date" in said):
        return "time"
    if "mail" in said:
        return "email"
    if any(word in said for word in ("url", "link", "uri")):
        return "url"
    if any(word in said for word in ("formula", "expression", "equation", "calculat")):
        return "formula"
    return next((kind for kind, its in NAMED.items() if name & its), "other")


class Wanted:
    """A slot among its function's.

    Args:
        slot: The slot.
        shared: How many slots of its function have each word in their names.
        index: Its place among those of its class; -1 where it is the only one.

    Attributes:
        kind: Its class.
        about: Its name, description and format, lower case.
        last: Whether it is the later of two moments.
        edge: "first" or "last" of several, as far as its name says so.
        asks_form: Whether its description says in which form moments are written.
        share: How much each word of its name weighs: the fewer slots have it, the more; 1 in all.
        others: Words of the other slots' names.
        described: Words of its description that are not in its name.
        codes: Codes by the names for which it wants them, if it does.
    """

    def __init__(self, slot: Slot, shared: Mapping[str, int], index: int) -> None:
        self.slot = slot
        self.index = index
        self.about = about(slot)
        self.kind = class_of(slot, self.about)
        self.last = wants_last(slot)
        self.edge = "last" if self.last else "first" if FIRST.search(slot.name) else ""
        self.asks_form = FORMAT.search(self.about) is not None
        names = frozenset(words(slot.name))
        total = sum(1 / shared[word] for word in names) or 1.0
        self.share = {word: 1 / shared[word] / total for word in names}
        self.others = frozenset(shared) - names
        self.described = frozenset(words(slot.description[:MAX_ABOUT])) - names
        self.codes = codes_for(names, self.about)

    @property
    def ranked(self) -> tuple[int, str, bool]:
        """On what it depends which of several spans of one kind suits it."""
        return self.index, self.edge, self.asks_form

    @classmethod
    def alone(cls, slot: Slot) -> Wanted:
        """A slot of which no function is known."""
        return cls(slot, Counter(set(words(slot.name))), -1)

    @classmethod
    def of(cls, function: Function) -> list[Wanted]:
        """The slots of a function."""
        shared = Counter(word for slot in function.slots for word in set(words(slot.name)))
        kinds = [class_of(slot, about(slot)) for slot in function.slots]
        counts = Counter(kinds)
        return [
            cls(slot, shared, kinds[:at].count(kind) if counts[kind] > 1 else -1)
            for at, (slot, kind) in enumerate(zip(function.slots, kinds, strict=True))
        ]
