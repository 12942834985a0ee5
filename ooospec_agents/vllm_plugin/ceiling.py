"""Rows that are drafted without any knowledge of calls: recorded ids played back, or nothing at all.

Played back, they show the most that any drafter could gain; with nothing to play they are plain decoding with
a report.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin.messages import MAX_TIMELINE, MAX_TOKEN_SOURCES

REPLAY_ARGUMENT = "ooospec_replay"
"""Name in a request's `vllm_xargs` of the ids to play back."""
REPLAY_VARIABLE = "OOOSPEC_ALLOW_REPLAY"
"""Environment variable that must be "1" for anything to be played back."""


def replay_allowed() -> bool:
    """Whether this server was started for measurements with recorded ids."""
    return os.environ.get(REPLAY_VARIABLE) == "1"


def replay_ids(extra_args: Mapping[str, Any] | None) -> list[int] | None:
    """The ids that a request wants played back; None where it wants none, or this server does not do that."""
    ids = (extra_args or {}).get(REPLAY_ARGUMENT)
    if not isinstance(ids, list) or not replay_allowed():
        return None
    return [int(token) for token in ids]


@dataclass(frozen=True)
class Replayed:
    """Recorded token ids, as a draft."""

    tokens: list[int]


class Ceiling:
    """Plays back `ids` as long as the output follows them."""

    source = "replay"

    def __init__(self, ids: Sequence[int], request_id: str = "", method: str = "ceiling") -> None:
        """Play back `ids`; empty: draft nothing."""
        self._ids = list(ids)
        self._request_id = request_id
        self._method = method
        self._started = time.monotonic()
        self._follows = True
        self._length = 0
        self._steps = 0
        self._last = 0
        self._drafted = 0
        self._accepted = 0
        self._timeline: list[list[float]] = []
        self._sources: list[str] = []

    def commit(self, token_ids: Sequence[int]) -> None:
        """Take the newly committed output tokens, in order."""
        new = list(token_ids)
        accepted = min(self._matching(new), max(len(new) - 1, 0))
        self._follows = self._follows and new == self._ids[self._length : self._length + len(new)]
        self._steps += 1
        self._accepted += accepted
        if len(self._timeline) < MAX_TIMELINE:
            at = round((time.monotonic() - self._started) * 1000.0, 3)
            self._timeline.append([at, self._length + len(new), self._last, accepted])
        room = MAX_TOKEN_SOURCES - len(self._sources)
        self._sources += ([self.source] * accepted + ["target"] * (len(new) - accepted))[:room]
        self._length += len(new)
        self._last = 0

    def offer(self, hint: Hint, now: float) -> None:
        """A hint says nothing to what only plays back."""

    def draft(self, limit: int) -> Replayed:
        """The recorded ids that come next, at most `limit`."""
        tokens = self._ids[self._length : self._length + limit] if self._follows else []
        self._last = len(tokens)
        self._drafted += len(tokens)
        return Replayed(tokens)

    def finish(self) -> None:
        """There is nothing to learn."""

    def report(self) -> dict[str, Any]:
        """What was drafted and accepted so far, in the form of every report."""
        return {
            "id": self._request_id,
            "method": self._method,
            "wire_format": "",
            "steps": self._steps,
            "tokens": self._length,
            "drafted": {self.source: self._drafted} if self._drafted else {},
            "accepted": {self.source: self._accepted} if self._accepted else {},
            "hint": {"arrived": False, "at_token": None, "used": False, "after_ms": None},
            "timeline": list(self._timeline),
            "token_sources": list(self._sources),
        }

    def _matching(self, new: Sequence[int]) -> int:
        expected = self._ids[self._length : self._length + self._last]
        matching = 0
        for token, other in zip(new, expected, strict=False):
            if token != other:
                break
            matching += 1
        return matching
