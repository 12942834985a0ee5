"""What finished calls teach: history, habits, trust. Bounded; kept apart by tenant, LoRA, method and format.

One thread teaches a memory; another, which thinks ahead, may read it meanwhile: what is read is copied whole first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from typing import Any

from ooospec_agents.drafting.cursor import Cursor, ReadCall
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.formats.style import Profile

MAX_FUNCTIONS = 256
MAX_CALLS_PER_FUNCTION = 16
MAX_VALUE_CHARS = 512
MAX_OPENINGS = 16
MAX_TRUSTED = 1024
MAX_TEXTS = 16
MAX_TEXT_CHARS = 400

KEPT = 0.98
"""Weight that an observation keeps when the next one comes."""
PRIOR_WEIGHT = 4.0
"""Observations that a source's own confidence counts for before its record outweighs it."""


class Record:
    """How often a source was right for one kind of segment.

    Attributes:
        earned: What its confidence is to be multiplied by.
    """

    __slots__ = ("_count", "_expected", "_right", "earned")

    def __init__(self) -> None:
        self._right = self._expected = self._count = 0.0
        self.earned = 1.0

    def add(self, confidence: float, right: bool) -> None:
        """Take note of a guess of that confidence."""
        self._right = self._right * KEPT + right
        self._expected = self._expected * KEPT + confidence
        self._count = self._count * KEPT + 1.0
        ratio = (self._right + PRIOR_WEIGHT * 0.5) / (self._expected + PRIOR_WEIGHT * 0.5)
        share = self._count / (self._count + PRIOR_WEIGHT)
        self.earned = 1 - share + share * ratio


class Memory:
    """What one tenant's calls in one wire format have taught."""

    def __init__(self, profile: Profile) -> None:
        self.style = profile.style()
        self.openings: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.texts: deque[str] = deque(maxlen=MAX_TEXTS)
        self.answers = 0
        self.called = 0
        self._calls: OrderedDict[str, deque[dict[str, Any]]] = OrderedDict()
        self._orders: dict[str, tuple[str, ...]] = {}
        self._names: deque[str] = deque(maxlen=64)
        self._trust: OrderedDict[tuple[str, str], Record] = OrderedDict()

    def learn(self, cursor: Cursor, ended: bool) -> None:
        """Learn from a finished request's text. `ended`: the target stopped by itself."""
        self._learn(cursor, ended)
        self.answers += 1  # last: who thinks ahead of its count has not seen all

    def _learn(self, cursor: Cursor, ended: bool) -> None:
        self._keep_text(cursor)
        done = [call for call in cursor.calls if call.complete and call.name]
        if not done:
            return
        self.called += 1
        self.style = cursor.style.copy()
        if len(self.openings) < MAX_OPENINGS or cursor.first_opening in self.openings:
            self.openings[cursor.first_opening] += 1
        if (
            ended
            and not cursor.inside
            and len(cursor.partial) < 64
            and (len(self.endings) < MAX_OPENINGS or cursor.partial in self.endings)
        ):
            self.endings[cursor.partial] += 1
        for call in done:
            self._keep(call)

    def _keep_text(self, cursor: Cursor) -> None:
        found = [segment.text for segment in cursor.segments if segment.kind == "text"]
        for text in (*found, "" if cursor.inside else cursor.partial):
            kept = text.strip()[:MAX_TEXT_CHARS]
            if any(map(str.isalpha, kept)) and kept not in self.texts:
                self.texts.append(kept)

    def _keep(self, call: ReadCall) -> None:
        values = {slot: value for slot, value in call.values().items() if len(repr(value)) <= MAX_VALUE_CHARS}
        kept = self._calls.setdefault(call.name, deque(maxlen=MAX_CALLS_PER_FUNCTION))
        kept.append(values)
        self._calls.move_to_end(call.name)
        self._orders[call.name] = tuple(slot for slot, _ in call.arguments[:128])
        self._names.append(call.name)
        while len(self._calls) > MAX_FUNCTIONS:
            name, _ = self._calls.popitem(last=False)
            self._orders.pop(name, None)

    def order(self, name: str) -> tuple[str, ...]:
        """The slots of the latest call of a function, in the order written."""
        return self._orders.get(name, ())

    def filled(self, name: str, slot: str) -> float | None:
        """Share of a function's earlier calls that filled a slot, or None before the first call."""
        calls = self._calls.get(name)
        return (sum(slot in call for call in list(calls)) + 0.5) / (len(calls) + 1.0) if calls else None

    def names(self) -> list[str]:
        """Functions called before, the commonest of late first."""
        return commonest(Counter(list(self._names)))

    def values(self, name: str, slot: str) -> list[Guess]:
        """Values that a slot had in earlier calls of the function, likeliest first."""
        calls = self._calls.get(name)
        if not calls:
            return []
        seen: dict[str, tuple[float, Any]] = {}
        for age, call in enumerate(list(calls)[::-1]):
            if slot in call:
                key = repr(call[slot])
                weight = seen[key][0] if key in seen else 0.0
                seen[key] = (weight + 1.0 / (1 + 0.5 * age), call[slot])
        total = sum(weight for weight, _ in seen.values()) + 1.0
        ranked = sorted(seen.values(), key=lambda item: -item[0])[:4]
        return [Guess(value, weight / total, "history") for weight, value in ranked]

    def trusted(self, source: str, kind: str, confidence: float) -> float:
        """A source's confidence, corrected by how often it was right for this kind of segment."""
        record = self._trust.get((source, kind))
        return confidence if record is None else min(max(confidence * record.earned, 0.01), 0.995)

    def judge(self, source: str, kind: str, confidence: float, right: bool) -> None:
        """Record whether a source's guess of a segment was what the target wrote."""
        self._trust.setdefault((source, kind), Record()).add(confidence, right)
        while len(self._trust) > MAX_TRUSTED:
            self._trust.popitem(last=False)


def commonest(counts: Counter[str]) -> list[str]:
    """What was counted, the commonest first; another thread may be counting."""
    return sorted(counts, key=lambda text: -counts[text])


class Stores:
    """All memories of one worker, the least recently used dropped first.

    Args:
        max_entries: Most memories kept.
    """

    def __init__(self, max_entries: int = 256) -> None:
        self._max_entries = max_entries
        self._memories: OrderedDict[tuple[str, ...], Memory] = OrderedDict()

    def memory(self, key: Iterable[str], profile: Profile) -> Memory:
        """The memory kept under a key; a new one knows only the format's layout."""
        key = tuple(key)
        return self.keep(key, self.glance(key, profile))

    def glance(self, key: tuple[str, ...], profile: Profile) -> Memory:
        """The memory kept under a key, or a new one that is not kept. Other threads may call it."""
        found = self._memories.get(key)
        return Memory(profile) if found is None else found

    def keep(self, key: tuple[str, ...], memory: Memory) -> Memory:
        """Keep a memory unless another is kept under that key; the one that is kept, which is now the last used."""
        kept = self._memories.setdefault(key, memory)
        self._memories.move_to_end(key)
        while len(self._memories) > self._max_entries:
            self._memories.popitem(last=False)
        return kept

    def __len__(self) -> int:
        """Memories kept now."""
        return len(self._memories)
