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
from dataclasses import dataclass, replace
from typing import Protocol

from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin.channel import MAX_AGE_S, MAX_DRAINED, WorkerInbox
from ooospec_agents.vllm_plugin.messages import GuessesMessage, HintMessage, Mail, Open
from ooospec_agents.vllm_plugin.row import Drafts

MAX_AHEAD = 64
"""Requests thought about whose rows have not begun. The next to begin is the oldest: no newer one takes its place."""
MAX_AHEAD_S = 60.0
"""Seconds that a thought is kept: by then its request has most likely been given up."""
MAX_BEGUN = 256
"""Begun requests remembered, so that none is thought about afterwards."""
MAX_MAIL = 512
"""Messages read that the engine has not taken. Further ones stay in the socket, which then takes no more."""
PATIENCE_S = 0.002
"""Longest wait of a row for a thought that is being thought: to think it at the same time would take longer."""
MAX_FAULTS = 10
"""Faults in reading mail after which the thread gives up; the engine reads on."""
PAUSE_S = 0.001
"""Pause after the thread was woken and found no mail."""


class ThinksAhead(Drafts, Protocol):
    """A drafter that can make its first plan before the first token."""

    def think(self) -> None:
        """Plan the first draft."""

    def begin(self) -> bool:
        """Its row begins: whether it knows all that a drafter made now would know."""


@dataclass(eq=False)
class Thought:
    """What was thought about one request.

    Attributes:
        opened: How it was announced, with the guesses that came since.
        assumed: The LoRA and the stop ids that it is taken to have: those of the request before.
        since: When that was, in monotonic seconds.
        hint: The newest hint.
        drafter: Its drafter, once it is made.
        seconds: How long the thread has thought.
        busy: Whether the thread is at it.
    """

    opened: Open
    assumed: tuple[str, tuple[int, ...]]
    since: float
    hint: Hint | None = None
    drafter: ThinksAhead | None = None
    seconds: float = 0.0
    busy: bool = False

    @property
    def ready(self) -> bool:
        """Whether nothing is to come that a drafter cannot be told later."""
        spec = self.opened.spec
        guessing = spec.method in ("lexical", "ooospec") and bool(spec.catalog.functions)
        return not guessing or spec.guesses is not None


class Foresight:
    """Reads a worker's mail as it comes, and thinks about the requests that it announces.

    Args:
        inbox: The mail; from now on it is read through here.
        make: Makes a drafter from a request, the name of its LoRA and its stop ids. It must leave no trace.
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
        self._reading = threading.Condition()
        self._thoughts: OrderedDict[str, Thought] = OrderedDict()
        self._begun: OrderedDict[tuple[str, float], None] = OrderedDict()
        self._keeping = threading.Condition()
        self._usual: tuple[str, tuple[int, ...]] = ("", ())
        self._closed = False
        self._until, self._end = os.pipe()
        self._poll = select.poll()
        self._poll.register(inbox.fileno(), select.POLLIN)
        self._poll.register(self._until, select.POLLIN)
        self._thread = threading.Thread(target=self._run, name="ooospec-foresight", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Thoughts kept now."""
        return len(self._thoughts)

    def mail(self) -> list[Mail]:
        """Everything that has come until now and was not taken yet, oldest first. Does not wait for more."""
        with self._reading:
            read, self._mail = self._mail, []
            if read:
                self._reading.notify()
                oldest = time.monotonic() - MAX_AGE_S  # an engine with nothing to do takes no mail
                fresh = [message for message in read if message.sent_at >= oldest]
                self._inbox.dropped += len(read) - len(fresh)
                read = fresh
            return [*read, *self._inbox.mail()]

    def take(self, opened: Open, lora: str, stops: Sequence[int]) -> Thought | None:
        """What was thought about a request that begins now, if it is of use; it is forgotten here.

        Args:
            opened: How it was announced.
            lora: The name of its LoRA, or "".
            stops: Its stop ids.
        """
        self._usual = (lora, tuple(stops))
        with self._keeping:
            key = _key(opened)
            self._begun[key] = None
            while len(self._begun) > MAX_BEGUN:
                self._begun.popitem(last=False)
            thought = self._thoughts.get(opened.spec.id)
            if thought is None or _key(thought.opened) != key:
                return None
            if thought.busy:
                self._keeping.wait(PATIENCE_S)
            if self._thoughts.get(opened.spec.id) is thought:
                del self._thoughts[opened.spec.id]
            if thought.busy or thought.drafter is None or thought.assumed != self._usual:
                return None
        return thought if thought.drafter.begin() else None

    def close(self) -> None:
        """End the thread. May be called twice."""
        if self._closed:
            return
        with self._reading:
            self._closed = True
            self._reading.notify()
        os.write(self._end, b".")
        self._thread.join(timeout=5)
        os.close(self._end)
        os.close(self._until)

    def _run(self) -> None:
        faults = 0
        while not self._closed:
            try:
                if self._poll.poll() and not self._closed and not self._read():
                    time.sleep(PAUSE_S)
            except Exception as error:
                self._on_fault("foresight", error)
                faults += 1
                if faults >= MAX_FAULTS:
                    return

    def _read(self) -> bool:
        """Read all mail and think; whether there was any."""
        came = False
        while not self._closed:
            with self._reading:
                while len(self._mail) >= MAX_MAIL and not self._closed:
                    self._reading.wait()
                most = min(MAX_DRAINED, MAX_MAIL - len(self._mail))
                new = self._inbox.mail(most)
                self._mail += new
            touched = [thought for message in new if (thought := self._take_in(message)) is not None]
            for thought in dict.fromkeys(touched):
                if thought.ready:
                    self._think(thought)
            came = came or bool(new)
            if len(new) < most:
                break
        return came

    def _take_in(self, message: Mail) -> Thought | None:
        """Note a message; the thought that it belongs to."""
        if isinstance(message, Open):
            return self._open(message)
        with self._keeping:
            thought = self._thoughts.get(message.id)
        if thought is not None and isinstance(message, HintMessage):
            thought.hint = message.hint
        elif thought is not None and isinstance(message, GuessesMessage):
            if thought.opened.spec.guesses is not None:
                thought.opened.spec.guesses.add(message.guesses)
                return None
            spec = replace(thought.opened.spec, guesses=message.guesses)
            thought.opened = replace(thought.opened, spec=spec)
        return thought

    def _open(self, message: Open) -> Thought | None:
        if message.spec.method in ("off", "ceiling"):
            return None
        now = time.monotonic()
        with self._keeping:
            self._thoughts.pop(message.spec.id, None)
            while self._thoughts and now - next(iter(self._thoughts.values())).since > MAX_AHEAD_S:
                self._thoughts.popitem(last=False)
            if _key(message) in self._begun or len(self._thoughts) >= MAX_AHEAD:
                return None
            thought = self._thoughts[message.spec.id] = Thought(message, self._usual, now)
        return thought

    def _think(self, thought: Thought) -> None:
        with self._keeping:
            if self._thoughts.get(thought.opened.spec.id) is not thought:
                return  # its row began
            thought.busy = True
        began = time.perf_counter()
        try:
            if thought.drafter is None:
                thought.drafter = self._make(thought.opened.spec, *thought.assumed)
            if thought.hint is not None:
                thought.drafter.offer(thought.hint, time.monotonic())
            thought.drafter.think()
        except Exception as error:
            thought.drafter = None
            self._on_fault("foresight", error)
        thought.seconds += time.perf_counter() - began
        with self._keeping:
            thought.busy = False
            self._keeping.notify_all()


def _key(opened: Open) -> tuple[str, float]:
    """Tells an announcement from a later one with the same id."""
    return opened.spec.id, opened.sent_at
