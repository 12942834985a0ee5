"""Thinking ahead: while the engine reads a request's prompt, a thread makes its drafter and its first plan.

A first draft costs most, about twice a later one, and nearly all that it needs is known before the first token. The
thread sleeps until mail comes. What it has not done when the row begins, the row does for itself.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin.channel import WorkerInbox
from ooospec_agents.vllm_plugin.messages import GuessesMessage, Mail, Open
from ooospec_agents.vllm_plugin.row import Drafts
from ooospec_agents.vllm_plugin.sockets import MAX_QUEUED

MAX_AHEAD = 64
"""Requests thought about ahead whose rows have not begun."""
MAX_AHEAD_S = 600.0
"""Seconds that such a thought is kept."""


class ThinksAhead(Drafts, Protocol):
    """A drafter that can make its first plan before the first token."""

    def think(self) -> None:
        """Plan the first draft."""

    def stale(self) -> bool:
        """Whether a drafter made now would know more."""


@dataclass
class Thought:
    """What was thought about one request.

    Attributes:
        spec: The request, as far as it is known.
        assumed: The LoRA and the stop ids that the request is taken to have: those of the one before.
        since: When the request was announced, in monotonic seconds.
        hint: The newest hint.
        drafter: Its drafter, once it is made.
        seconds: How long that took.
        busy: Whether the thread is at it.
    """

    spec: RequestSpec
    assumed: tuple[str, tuple[int, ...]]
    since: float
    hint: Hint | None = None
    drafter: ThinksAhead | None = None
    seconds: float = 0.0
    busy: bool = field(default=False, repr=False)

    @property
    def ready(self) -> bool:
        """Whether nothing more is to come that a drafter cannot be told later."""
        guessing = self.spec.method in ("lexical", "ooospec") and bool(self.spec.catalog.functions)
        return not guessing or self.spec.guesses is not None


class Foresight:
    """Reads a worker's mail as it comes, and thinks about the requests that it announces.

    Args:
        inbox: The mail; from now on it is read through here.
        make: Makes a drafter from a request, the name of its LoRA and its stop ids.
        on_fault: Told what went wrong in the thread.
    """

    def __init__(
        self,
        inbox: WorkerInbox,
        make: Callable[[RequestSpec, str, Sequence[int]], ThinksAhead],
        on_fault: Callable[[str, Exception], None],
    ) -> None:
        self._inbox = inbox
        self._make = make
        self._on_fault = on_fault
        self._mail: list[Mail] = []
        self._reading = threading.Lock()
        self._thoughts: OrderedDict[str, Thought] = OrderedDict()
        self._keeping = threading.Lock()
        self._usual: tuple[str, tuple[int, ...]] = ("", ())
        self._until, self._end = os.pipe()
        self._thread = threading.Thread(target=self._run, name="ooospec-foresight", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Thoughts kept now."""
        return len(self._thoughts)

    def mail(self) -> list[Mail]:
        """Everything that has come until now and was not taken yet, oldest first. Does not wait for more."""
        with self._reading:
            mail, self._mail = [*self._mail, *self._inbox.mail()], []
        return mail

    def take(self, request_id: str, lora: str, stops: Sequence[int]) -> Thought | None:
        """What was thought about a request that begins now, if it is of use; it is forgotten here.

        Args:
            request_id: Its own id.
            lora: The name of its LoRA, or "".
            stops: Its stop ids.
        """
        self._usual = (lora, tuple(stops))
        with self._keeping:
            thought = self._thoughts.pop(request_id, None)
            if thought is None or thought.busy or thought.drafter is None:
                return None
        fits = thought.assumed == self._usual and not thought.drafter.stale()
        return thought if fits else None

    def close(self) -> None:
        """End the thread. May be called twice."""
        if self._thread.is_alive():
            os.write(self._end, b".")
            self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            while self._wait():
                with self._reading:
                    new = self._inbox.mail()
                    self._mail += new
                    # An engine with nothing to do takes no mail.
                    self._inbox.dropped += max(len(self._mail) - MAX_QUEUED, 0)
                    del self._mail[:-MAX_QUEUED]
                for message in new:
                    self._take_in(message)
        except Exception as error:  # the rows think for themselves then
            self._on_fault("foresight", error)

    def _wait(self) -> bool:
        """Sleep until there is mail; False at the end."""
        ready, _, _ = select.select([self._inbox.fileno(), self._until], [], [])
        return self._until not in ready

    def _take_in(self, message: Mail) -> None:
        try:
            thought = self._begin(message) if isinstance(message, Open) else self._known(message.id)
            if thought is None:
                return
            if isinstance(message, GuessesMessage):
                thought.spec = replace(thought.spec, guesses=message.guesses)
            elif not isinstance(message, Open):
                thought.hint = message.hint
            if thought.ready:
                self._think(thought)
        except Exception as error:
            self._on_fault("foresight", error)

    def _begin(self, message: Open) -> Thought | None:
        spec = message.spec
        if spec.method in ("off", "ceiling"):
            return None
        now = time.monotonic()
        thought = Thought(spec, self._usual, now)
        with self._keeping:
            self._thoughts[spec.id] = thought
            self._thoughts.move_to_end(spec.id)
            while len(self._thoughts) > MAX_AHEAD or now - next(iter(self._thoughts.values())).since > MAX_AHEAD_S:
                self._thoughts.popitem(last=False)
        return thought

    def _known(self, request_id: str) -> Thought | None:
        with self._keeping:
            return self._thoughts.get(request_id)

    def _think(self, thought: Thought) -> None:
        with self._keeping:
            if self._thoughts.get(thought.spec.id) is not thought:
                return  # its row began
            thought.busy = True
        began = time.perf_counter()
        if thought.drafter is None:
            thought.drafter = self._make(thought.spec, *thought.assumed)
        if thought.hint is not None:
            thought.drafter.offer(thought.hint, time.monotonic())
        thought.drafter.think()
        thought.seconds += time.perf_counter() - began
        with self._keeping:
            thought.busy = False
