"""What has come over the local socket for requests that the engine has not begun, or not all of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from ooospec_agents.vllm_plugin.messages import GuessesMessage, HintMessage, Open

MAX_REQUESTS = 1024
"""Requests that may wait for their first step."""
MAX_WAIT_S = 600.0
"""Seconds that a request may wait in the engine's queue before what is known of it is dropped."""
MAX_EARLY_HINTS = 256
"""Hints kept that came before their request: the two may take different API processes."""
EARLY_HINT_S = 30.0
"""Seconds that such a hint is kept."""
MAX_FINISHED = 1024
"""Finished requests remembered, so that a hint that comes too late is dropped at once."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class Waiting:
    """An announced request, the newest hint for it, and when it came (this process's monotonic seconds)."""

    open: Open
    since: float
    hint: HintMessage | None = None


class WaitingRoom:
    """Requests and hints by the request's own id, bounded in number and age."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """An empty room; `clock` gives monotonic seconds."""
        self.late = 0
        """Hints that came after their request's end."""
        self.unclaimed = 0
        """Hints dropped since no request came for them, or too many waited."""
        self._clock = clock
        self._requests: OrderedDict[str, Waiting] = OrderedDict()
        self._early: OrderedDict[str, tuple[HintMessage, float]] = OrderedDict()
        self._finished: OrderedDict[str, None] = OrderedDict()

    def open(self, message: Open) -> None:
        """A request was announced; an id may be used again after its end."""
        request_id = message.spec.id
        self._finished.pop(request_id, None)
        early = self._early.pop(request_id, None)
        waiting = Waiting(message, self._clock(), early[0] if early is not None else None)
        _put(self._requests, request_id, waiting, MAX_REQUESTS)

    def hint(self, message: HintMessage) -> None:
        """A hint came: kept for rows of that request that begin later, unless the request is over."""
        waiting = self._requests.get(message.id)
        if waiting is not None:
            self._requests[message.id] = replace(waiting, hint=message)
        elif message.id in self._finished:
            self.late += 1
        else:
            self.unclaimed += _put(self._early, message.id, (message, self._clock()), MAX_EARLY_HINTS)

    def guesses(self, message: GuessesMessage) -> None:
        """Guesses came: they count for rows of that request that begin later, further ones for those that run, too."""
        waiting = self._requests.get(message.id)
        known = waiting.open.spec.guesses if waiting is not None else None
        if known is not None:
            known.add(message.guesses)
        elif waiting is not None:
            spec = replace(waiting.open.spec, guesses=message.guesses)
            self._requests[message.id] = replace(waiting, open=replace(waiting.open, spec=spec))

    def get(self, request_id: str) -> Waiting | None:
        """What was announced of a request, or None."""
        return self._requests.get(request_id)

    def close(self, request_id: str) -> None:
        """The request is over: forget it, and whatever still comes for it."""
        self._requests.pop(request_id, None)
        self._early.pop(request_id, None)
        _put(self._finished, request_id, None, MAX_FINISHED)

    def expire(self) -> None:
        """Drop what has waited too long. Cheap: entries are in the order of their age."""
        now = self._clock()
        while self._requests and now - next(iter(self._requests.values())).since > MAX_WAIT_S:
            self._requests.popitem(last=False)
        while self._early and now - next(iter(self._early.values()))[1] > EARLY_HINT_S:
            self._early.popitem(last=False)
            self.unclaimed += 1

    def sizes(self) -> dict[str, int]:
        """How much is kept, by store."""
        return {"waiting": len(self._requests), "early_hints": len(self._early), "finished": len(self._finished)}


def _put(entries: OrderedDict[str, Value], key: str, value: Value, limit: int) -> int:
    """Keep a value as the newest; how many old ones had to go."""
    entries[key] = value
    entries.move_to_end(key)
    gone = 0
    while len(entries) > limit:
        entries.popitem(last=False)
        gone += 1
    return gone
