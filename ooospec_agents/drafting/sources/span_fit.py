"""How well the values that stand in a conversation suit a slot.

A conditional logit: for each slot, one of the candidates is its value, or none of them is. Each candidate has a few
features, the sum of their weights is its score, and the weights are the same for all slots (`span_weights.json`, fitted
by `ooospec_agents.training.values` to calls of functions that no evaluation set knows). Then the slots of one call are
looked at together: what suits another slot better is seldom the value of two.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from typing import Any

from ooospec_agents.catalog import Function, Slot
from ooospec_agents.drafting.sources.candidates import Feature, candidates
from ooospec_agents.drafting.sources.phrases import WHOLE
from ooospec_agents.drafting.sources.reading import MOMENTS, Place, Reading, is_phrase
from ooospec_agents.drafting.sources.shared_words import words
from ooospec_agents.drafting.sources.wanted import CLOSED, Wanted

MAX_FUNCTION = 200
"""Characters of a function's description that are compared."""
NEXT_TO = 3
"""Words between a parameter's name and a span that belongs to it, less one."""
CLOSE = 6
"""Words before a span in which a description's words count."""
ROUNDS = 4
"""Rounds in which slots give way to each other."""
MOST_PLACES, MOST_TOGETHER = 40, 24
LEAST = 0.01
"""Probability below which a candidate is left out."""
KEPT_FEATURES = 1 << 14


@dataclass(slots=True)
class Option:
    """A value.

    Attributes:
        value: The value.
        probability: How likely it is the slot's.
        of_schema: Whether only the schema names it.
        said_last: Whether the user's last message says it.
    """

    value: Any
    probability: float
    of_schema: bool
    said_last: bool = False


@dataclass(slots=True)
class Likely:
    """What a slot's value is likely to be.

    Attributes:
        options: Values by their representation.
        none: Probability that it is none of them.
    """

    options: dict[str, Option]
    none: float


class SpanFit:
    """The fit of one conversation's spans.

    Args:
        conversation: The messages as text, newest last.
        most: Places that are kept, at most: those that are the likeliest values, whatever is asked for.
    """

    def __init__(self, conversation: str, most: int = MOST_PLACES) -> None:
        self.reading = Reading(conversation)
        self._most = most
        self._by_function: dict[str, list[tuple[int, Feature]]] = {}
        self._found: dict[str, dict[str, Likely]] = {}

    def read(self) -> None:
        """Read the conversation now; otherwise it is read when a slot is first asked about."""
        _ = self._before, self._inside, self.reading.clocks, self.reading.asked, self.reading.words

    def of(self, function: Function) -> dict[str, Likely]:
        """What the slots of a function are likely to be, looked at together; by slot name.

        Of more than `MOST_TOGETHER` slots the required ones come first, and the rest is left out.
        """
        found = self._found.get(function.name)
        if found is None:
            found = self._found[function.name] = self._together(function)
        return found

    def suits(self, function: Function) -> tuple[float, float]:
        """How well a function suits what is said.

        Returns:
            How likely a required parameter's value is among those found, in the mean (0 where none is required, but
            for options and truth values); and how likely the user's last message says a value of any parameter.
        """
        found = self.of(function)
        needed = [
            found[slot.name].none
            for slot in function.slots
            if slot.required and slot.name in found and not _closed(slot)
        ]
        said = [
            option.probability for likely in found.values() for option in likely.options.values() if option.said_last
        ]
        return (1 - sum(needed) / len(needed) if needed else 0.0), max(said, default=0.0)

    def _together(self, function: Function) -> dict[str, Likely]:
        slots = Wanted.of(function)
        if len(slots) > MOST_TOGETHER:
            slots = sorted(slots, key=lambda wanted: not wanted.slot.required)[:MOST_TOGETHER]
        found = {wanted.slot.name: self._likely(wanted, function) for wanted in slots}
        for _ in range(ROUNDS):
            if not _give_way(found.values()):
                break
        return found

    def alone(self, slot: Slot) -> Likely:
        """What a slot is likely to be of which no function is known."""
        return self._likely(Wanted.alone(slot), None)

    def _likely(self, wanted: Wanted, function: Function | None) -> Likely:
        weight = WEIGHTS.get
        scores = [] if wanted.kind in CLOSED else self._scores(wanted, function)
        found = []
        for value, place, features in candidates(self.reading, self.places, wanted):
            score = scores[place] if place >= 0 else 0.0
            for name, amount in features:
                score += weight(name, 0.0) * amount
            found.append((score, value, place))
        nothing = sum(weight(name, 0.0) * amount for name, amount in self.none(wanted))
        top = max(nothing, max((score for score, _, _ in found), default=nothing))
        parts = [math.exp(score - top) for score, _, _ in found]
        none = math.exp(nothing - top)
        total = sum(parts) + none
        options: dict[str, Option] = {}
        for (_, value, place), part in zip(found, parts, strict=True):
            if part > total * LEAST / 4:
                option = options.setdefault(repr(value), Option(value, 0.0, True))
                option.probability += part / total
                option.of_schema = option.of_schema and place < 0
                option.said_last = option.said_last or (place >= 0 and self._said_last[place])
        return Likely({key: one for key, one in options.items() if one.probability >= LEAST}, none / total)

    def _scores(self, wanted: Wanted, function: Function | None) -> list[float]:
        """What each place is worth, whatever value it stands for."""
        kind, ranked, weight = wanted.kind, wanted.ranked, WEIGHTS.get
        scores = [
            plain + _weight_of_class(kind, its, preposition) + _weight_of_rank(ranked, its, rank)
            for plain, its, preposition, rank in self._plain
        ]
        for at, (name, amount) in self.details(wanted, function):
            scores[at] += weight(name, 0.0) * amount
        return scores

    def none(self, wanted: Wanted) -> Iterator[Feature]:
        """Features of there being another value, or none at all."""
        yield "none", 1.0
        yield f"none: {wanted.kind}", 1.0
        if not wanted.slot.required:
            yield "none: optional", 1.0
            yield f"none: optional {wanted.kind}", 1.0
        if wanted.slot.has_default and wanted.slot.default is not None:
            yield "none: default", 1.0
        if self.reading.words.isdisjoint(wanted.share):
            yield "none: unnamed", 1.0
            yield f"none: unnamed {wanted.kind}", 1.0

    def fixed(self, place: Place, wanted: Wanted) -> Iterator[Feature]:
        """Features of a place that depend on no word of the slot's."""
        yield from _plain(place, place.turn == self.reading.last)
        yield from _of_class(wanted.kind, place.span.kind, place.preposition)
        yield from _of_rank(wanted.ranked, place.span.kind, place.rank)

    def details(self, wanted: Wanted, function: Function | None) -> Iterator[tuple[int, Feature]]:
        """Features of places that depend on words, each with the place's index."""
        if function is not None:
            yield from self._of_function(function)
        places = self.places
        for word, share in wanted.share.items():
            for at, distance in self._before.get(word, ()):
                place = places[at]
                size = "1" if distance < 1 else "3" if distance < NEXT_TO else "more"
                if distance >= place.near or not wanted.others.isdisjoint(place.before[:distance]):
                    yield at, (f"name far {size}", share)
                    continue
                yield at, (f"name near {size}", share)
                if distance < NEXT_TO:
                    yield at, (f"name near: {place.span.kind}", share)
            for at in self._after.get(word, ()):
                yield at, ("name follows", share)
        for word in wanted.described:
            for at, distance in self._before.get(word, ()):
                if distance < CLOSE:
                    yield at, ("description near" if distance < places[at].near else "description far", 1.0)
            for at in self._after.get(word, ()):
                yield at, ("description follows", 1.0)
        yield from self._by_text(wanted)
        for at in self._keys.get(wanted.slot.name, ()):
            yield at, ("json value of that name", 1.0)
        yield from self._asked(wanted)

    def _asked(self, wanted: Wanted) -> Iterator[tuple[int, Feature]]:
        for turn, (question, length) in self.reading.asked.items():
            share = sum([its for word, its in wanted.share.items() if word in question])
            if not share:
                continue
            for at in self._by_turn[turn]:
                span = self.places[at].span
                yield at, ("asked for", share)
                yield at, ("asked for, phrase" if is_phrase(span.kind) else "asked for, no phrase", share)
                yield at, ("asked for, all said", share * min(len(span.text) / max(length - 2, 1), 1.0))

    def _by_text(self, wanted: Wanted) -> Iterator[tuple[int, Feature]]:
        held: defaultdict[int, float] = defaultdict(float)
        names: Counter[int] = Counter()
        described: Counter[int] = Counter()
        for word, share in wanted.share.items():
            for at in self._inside.get(word, ()):
                held[at] += share
                names[at] += 1
        for word in wanted.described:
            described.update(self._inside.get(word, ()))
        for at in {**names, **described}:
            size = len(self.places[at].span.words)
            if names[at] == size:
                yield at, ("is the name", 1.0)
                continue
            if names[at]:
                yield at, ("holds the name", held[at])
            if described[at]:
                yield at, ("is described" if described[at] == size and size < 3 else "holds described", 1.0)

    def _of_function(self, function: Function) -> list[tuple[int, Feature]]:
        found = self._by_function.get(function.name)
        if found is None:
            name = frozenset(words(function.name))
            described = frozenset(words(function.description[:MAX_FUNCTION])) - name
            found = self._by_function[function.name] = []
            for at, place in enumerate(self.places):
                if shared := len(name & place.said):
                    found.append((at, ("sentence names function", shared / len(name))))
                if shared := len(described & place.said):
                    found.append((at, ("sentence describes function", shared / (3 + len(described)))))
                its = place.span.words
                if its and its <= name | described:
                    found.append((at, ("is of the function", 1.0)))
                    found.append((at, (f"is of the function: {place.span.kind}", 1.0)))
        return found

    @cached_property
    def places(self) -> list[Place]:
        """The places that are kept, in the reading's order."""
        return [place for place, _ in self._kept]

    @cached_property
    def _said_last(self) -> list[bool]:
        """Of each place whether it is in the user's last message."""
        return [place.turn == self.reading.last for place in self.places]

    @cached_property
    def _plain(self) -> list[tuple[float, str, str, int]]:
        """Of each place the weight of what depends on no slot, its kind, its preposition and its rank."""
        return [(plain, place.span.kind, place.preposition, place.rank) for place, plain in self._kept]

    @cached_property
    def _kept(self) -> list[tuple[Place, float]]:
        found = []
        for place in self.reading.places:
            features = _plain(place, place.turn == self.reading.last)
            found.append((place, sum([WEIGHTS.get(name, 0.0) * amount for name, amount in features])))
        if len(found) <= self._most:
            return found
        least = sorted((plain for _, plain in found), reverse=True)[self._most - 1]
        return [(place, plain) for place, plain in found if plain >= least]

    @cached_property
    def _before(self) -> dict[str, list[tuple[int, int]]]:
        """Places before which a word stands, and how many words are between."""
        out: dict[str, list[tuple[int, int]]] = {}
        for at, place in enumerate(self.places):
            for distance, word in enumerate(place.before):
                if word not in place.before[:distance]:
                    out.setdefault(word, []).append((at, distance))
        return out

    @cached_property
    def _after(self) -> dict[str, list[int]]:
        return _index(place.after for place in self.places)

    @cached_property
    def _inside(self) -> dict[str, list[int]]:
        return _index(place.span.words if place.span.kind not in WHOLE else () for place in self.places)

    @cached_property
    def _keys(self) -> dict[str, list[int]]:
        return _index((place.key,) if place.key else () for place in self.places)

    @cached_property
    def _by_turn(self) -> defaultdict[int, list[int]]:
        out: defaultdict[int, list[int]] = defaultdict(list)
        for at, place in enumerate(self.places):
            out[place.turn].append(at)
        return out


def _closed(slot: Slot) -> bool:
    """Whether a slot's values are known beforehand, as `CLOSED` has it."""
    return bool(slot.options) or "boolean" in slot.types


def _plain(place: Place, last: bool) -> Iterator[Feature]:
    """Features of a place that depend on no slot."""
    yield f"kind {place.span.kind}", 1.0
    yield ("role user last" if last else f"role {place.role}"), 1.0
    yield "age", math.log1p(place.age)
    if place.preposition:
        yield f"after {place.preposition}", 1.0
    if place.sentence:
        yield "sentence later", math.log1p(place.sentence)
    if place.key:
        yield "json value", 1.0
    for flag in place.flags:
        yield flag, 1.0


def _of_class(wanted: str, kind: str, preposition: str) -> Iterator[Feature]:
    """Features of a kind and a preposition, for a class of slots."""
    yield f"{wanted}: {kind}", 1.0
    if preposition:
        yield f"{wanted}: after {preposition}", 1.0


def _of_rank(wanted: tuple[int, str, bool], kind: str, rank: int) -> Iterator[Feature]:
    """Features of a kind and a place's rank in it, for a slot's `Wanted.ranked`."""
    index, edge, asks_form = wanted
    if kind in MOMENTS:
        yield f"{kind}, {'form asked' if asks_form else 'any form'}", 1.0
    if not is_phrase(kind):
        if index < 0 and rank:
            yield "later of its kind", 1.0
        if index >= 0 and rank != index:
            yield "out of order", 1.0
    if edge == "last" and not rank:
        yield "first, last wanted", 1.0
    if edge == "first" and rank:
        yield "later, first wanted", 1.0


@lru_cache(maxsize=KEPT_FEATURES)
def _weight_of_class(wanted: str, kind: str, preposition: str) -> float:
    return sum(WEIGHTS.get(name, 0.0) * amount for name, amount in _of_class(wanted, kind, preposition))


@lru_cache(maxsize=KEPT_FEATURES)
def _weight_of_rank(wanted: tuple[int, str, bool], kind: str, rank: int) -> float:
    return sum(WEIGHTS.get(name, 0.0) * amount for name, amount in _of_rank(wanted, kind, rank))


def _index(found: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for at, its in enumerate(found):
        for word in set(its):
            out.setdefault(word, []).append(at)
    return out


def _give_way(found: Collection[Likely]) -> bool:
    """One round: what stands in the conversation and suits several slots is shared, and what is left is spread anew.

    What the schema names, options and truth values among it, may be the value of any number of slots.

    Returns:
        Whether anything had to be shared.
    """
    shares: dict[str, float] = defaultdict(float)
    said = [option for likely in found for option in likely.options.values() if not option.of_schema]
    for option in said:
        shares[str(option.value)] += option.probability
    wanted_twice = any(share > 1.0 for share in shares.values())
    for option in said if wanted_twice else ():
        option.probability /= max(shares[str(option.value)], 1.0)
    for likely in found:
        total = likely.none + sum(option.probability for option in likely.options.values())
        likely.none /= total
        for option in likely.options.values():
            option.probability /= total
    return wanted_twice


def _weights() -> Mapping[str, float]:
    path = resources.files(__package__) / "span_weights.json"
    return {name: float(weight) for name, weight in json.loads(path.read_text(encoding="utf-8"))["weights"].items()}


WEIGHTS = _weights()
