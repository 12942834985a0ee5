"""One request's drafter: committed tokens and a hint go in, the next draft comes out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from time import monotonic
from typing import Any, Protocol

from ooospec_agents.drafting.budget import Budget
from ooospec_agents.drafting.expectation import Expectation
from ooospec_agents.drafting.memory import Stores
from ooospec_agents.drafting.notations import continuation_for, cursor_for
from ooospec_agents.drafting.piece import BEYOND, MAX_TEXT, Piece
from ooospec_agents.drafting.plan import Draft, Plan
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.formats import FORMATS
from ooospec_agents.hint import Hint

MAX_SOURCES = 2048
MAX_TIMELINE = 256
TAG = "tool_call>"
KNOWN = 0.95
"""Probability that a target that agreed so far goes on as the output that is known."""
TAIL = 6
"""Committed tokens that are encoded again together with the continuation, so that its first token is the target's."""


class TokenCodec(Protocol):
    """The target's tokenizer: text to ids without added specials, ids to text with specials kept."""

    vocab_size: int

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids."""
        ...

    def __hash__(self) -> int:
        """By identity."""
        ...


class Drafter:
    """Drafts one request.

    Args:
        spec: The request.
        codec: The target's tokenizer.
        stores: What was learned from earlier requests; this one is added to it when it ends.
        lora: Name of the LoRA that answers, or "".
        stop_ids: Token ids that end this request's output; the first is drafted after a call.
        budget: How long a draft may be.
        clock: Monotonic seconds.
        ahead: Leave no trace in the stores until `begin`.

    Attributes:
        spec: The request.
        idle: Whether there was nothing to draft when it was last asked for a draft.
    """

    def __init__(
        self,
        spec: RequestSpec,
        codec: TokenCodec,
        stores: Stores,
        *,
        lora: str = "",
        stop_ids: Sequence[int] = (),
        budget: Budget | None = None,
        clock: Callable[[], float] = monotonic,
        ahead: bool = False,
    ) -> None:
        self.spec = spec
        self._codec = codec
        self._stop_ids = tuple(stop_ids)
        self._budget = budget or Budget()
        self._clock = clock
        self._started = clock()
        self._format = FORMATS.get(spec.wire_format, FORMATS["json"])
        key = (spec.tenant, spec.scope, spec.method, lora, spec.wire_format)
        self._stores, self._key = stores, key
        self._memory = stores.glance(key, self._format.profile) if ahead else stores.memory(key, self._format.profile)
        self._known_answers = self._memory.answers  # before anything is read of it: another thread may teach it
        self._cursor = cursor_for(self._format, self._memory.style.copy(), spec.named)
        self._expectation = Expectation(spec, self._memory)
        self._ids: list[int] = []
        self._decoded_from = self._decoded_to = 0
        self._judged = 0
        self._last = Draft([], [])
        self._plan: Plan | None = None
        self._ahead: Plan | None = None
        self._ended = self._finished = self.idle = False
        self._drafted: dict[str, int] = {}
        self._accepted: dict[str, int] = {}
        self._token_sources: list[str] = []
        self._timeline: list[list[float]] = []
        self._steps = 0
        self._hint_at: int | None = None
        self._hint_after: float | None = None

    def think(self) -> None:
        """Plan before the first token is there; the first draft goes on from it if that token is as expected.

        Where no token is worth its place in a step, nothing is planned: the cores have other work to do.
        """
        floor = self._budget.floor
        if floor <= 1 and not self._ids and self.spec.method not in ("off", "ceiling"):
            self._expectation.look_ahead()
            self._plan = self._planned(floor)

    def begin(self) -> bool:
        """The request begins, of which it was thought ahead: whether a drafter made now would know no more."""
        kept = self._stores.keep(self._key, self._memory)
        if kept is not self._memory and (kept.answers or self._known_answers):
            return False
        # Of several first requests each was thought about with an empty memory of its own.
        self._memory = self._expectation.memory = kept
        return kept.answers == self._known_answers

    def commit(self, token_ids: Sequence[int]) -> None:
        """Take newly committed output tokens, in order."""
        new = list(token_ids)
        if not new:
            return
        if not self._ids:
            self._started = self._clock()
        accepted = self._score(new)
        self._follow(new, accepted)
        self._steps += 1
        self._ids += new
        if len(self._timeline) < MAX_TIMELINE:
            elapsed = round((self._clock() - self._started) * 1e3, 1)
            self._timeline.append([elapsed, len(self._ids), len(self._last.tokens), accepted])
        self._last = Draft([], [])
        if not self._ended:
            self._decode(new)
            self._judge()

    def offer(self, hint: Hint, now: float) -> None:
        """Take a hint that arrived at `now` (monotonic seconds). Methods other than "ooospec" ignore it."""
        if self.spec.method != "ooospec" or self._ended or hint is self._expectation.hint:
            return
        self._expectation.offer(hint)
        self._ahead = None
        if self._hint_at is None:
            self._hint_at = len(self._ids)
            self._hint_after = round((now - self._started) * 1e3, 1) if self._ids else 0.0

    def draft(self, limit: int, afresh: bool = False) -> Draft:
        """The next draft, at most `limit` tokens; empty where nothing is expected.

        Args:
            limit: Most tokens.
            afresh: Think again, although the target wrote what was expected and the expectation goes on.
        """
        floor = self._budget.floor
        if limit <= 0 or floor > 1 or self._ended or self.spec.method in ("off", "ceiling"):
            self._last = Draft([], [])
            return self._last
        self._plan = (None if afresh else self._ahead) or self._planned(floor)
        self.idle = self._plan is None
        self._last = self._plan.draft(limit, self._budget) if self._plan is not None else Draft([], [])
        _count(self._drafted, self._last.sources)
        return self._last

    def finish(self) -> None:
        """The request has ended: learn from it, once."""
        if self._finished:
            return
        self._finished = True
        if self.spec.method not in ("off", "ceiling"):
            self._memory.learn(self._cursor, self._ended)

    def report(self) -> dict[str, Any]:
        """What was drafted and accepted, as JSON-able data."""
        return {
            "id": self.spec.id,
            "method": self.spec.method,
            "wire_format": self.spec.wire_format,
            "steps": self._steps,
            "tokens": len(self._ids),
            "drafted": dict(self._drafted),
            "accepted": dict(self._accepted),
            "hint": {
                "arrived": self._hint_at is not None,
                "at_token": self._hint_at,
                "used": self._drafted.get("hint", 0) > 0,
                "after_ms": self._hint_after,
            },
            "timeline": self._timeline,
            "token_sources": self._token_sources,
        }

    def _follow(self, new: list[int], accepted: int) -> None:
        """Go on with the plan if the target did, its own token at the end included."""
        plan, done = self._plan, accepted + 1
        agreed = plan is not None and len(new) == done and plan.tokens[accepted:done] == new[accepted:]
        self._ahead = plan.after(done) if plan is not None and agreed else None
        self._plan = None  # of no use from the next place on, should nothing be drafted here

    def _known_output(self) -> tuple[list[Piece], str]:
        """What is left of the output that the hint knows, while the target agrees with it; and how that goes on."""
        output = self._expectation.output
        written = self._cursor.text
        if not output or not output.startswith(written):
            return [], ""
        rest = output[len(written) :]
        pieces = [Piece("text", rest[:MAX_TEXT], "hint", KNOWN)] if rest else []
        if len(rest) > MAX_TEXT:
            return pieces, rest[MAX_TEXT : MAX_TEXT + BEYOND]
        return [*pieces, Piece("stop", "", "hint", KNOWN)], ""

    def _score(self, new: list[int]) -> int:
        accepted = 0
        for token, expected in zip(new[:-1], self._last.tokens, strict=False):
            if token != expected:
                break
            accepted += 1
        sources = self._last.sources[:accepted]
        _count(self._accepted, sources)
        if len(self._token_sources) < MAX_SOURCES:
            self._token_sources += sources
            self._token_sources += ["target"] * (len(new) - accepted)
        return accepted

    def _decode(self, new: list[int]) -> None:
        stop = next((index for index, token in enumerate(new) if token in self._stop_ids), None)
        if stop is not None:
            self._ended = True
            del self._ids[len(self._ids) - len(new) + stop + 1 :]
        end = len(self._ids) - (stop is not None)
        known = self._codec.decode(self._ids[self._decoded_from : self._decoded_to])
        text = self._codec.decode(self._ids[self._decoded_from : end])
        if len(text) > len(known) and (not text.endswith("\ufffd") or self._ended):
            self._cursor.feed(text[len(known) :])
            self._decoded_from, self._decoded_to = self._decoded_to, end

    def _judge(self) -> None:
        segments = self._cursor.segments
        for segment in segments[self._judged :]:
            call = segment.call
            if segment.kind in ("name", "value") and call < len(self._cursor.calls):
                name = self._cursor.calls[call].name
                if not self._expectation.judge(call, name, segment.slot, segment.text, self._cursor.style):
                    self._ahead = None  # it relied on who was wrong
        self._judged = len(segments)

    def _planned(self, floor: float) -> Plan | None:
        pieces, beyond = self._known_output()
        if not pieces:
            continuation = continuation_for(self._cursor, self._expectation, self._format, floor)
            pieces, beyond = continuation.pieces(), continuation.beyond
        if not pieces:
            return None
        text = "".join(piece.text for piece in pieces)
        tokens = self._encode(text + beyond) if text else []
        known = _lengths(self._codec)
        ends = pieces[-1].kind == "stop" and self._stop_ids and self._decoded_to == len(self._ids)
        lengths = [known[token] for token in tokens]
        return Plan.of(pieces, tokens, lengths, self._stop_ids[0] if ends else None, len(beyond))

    def _encode(self, text: str) -> list[int]:
        if self._decoded_to != len(self._ids):
            return []  # the last token ends inside a character: nothing can be appended to it as text
        tail = self._ids[-TAIL:]
        joined = self._spelled(self._codec.decode(tail) + text)
        return joined[len(tail) :] if joined[: len(tail)] == tail else self._spelled(text)

    def _spelled(self, text: str) -> list[int]:
        """Encode text; its tags as the target spelled its own: as one added token, or letter by letter as text."""
        # Before its first token: a call that is required is held to a grammar, and that takes tags for text.
        as_text = self._cursor.text.startswith("<") if self._ids else self.spec.required
        if TAG not in text or not as_text:
            return self._codec.encode(text)
        tag = _tag_ids(self._codec)
        if len(tag) > 1 or tag[0] in self._ids:
            return self._codec.encode(text)
        # An added token is found in whole text only: cut behind its bracket, it is read as ordinary text.
        return [token for part in re.split(rf"(?<=[</])(?={TAG})", text) for token in self._codec.encode(part)]


class _Lengths(dict[int, int]):
    """Characters of each token of one tokenizer, found out when first asked for."""

    def __init__(self, codec: TokenCodec) -> None:
        super().__init__()
        self._codec = codec

    def __missing__(self, token: int) -> int:
        length = self[token] = len(self._codec.decode((token,)))
        return length


@lru_cache(maxsize=4)
def _lengths(codec: TokenCodec) -> _Lengths:
    return _Lengths(codec)


@lru_cache(maxsize=4)
def _tag_ids(codec: TokenCodec) -> tuple[int, ...]:
    return tuple(codec.encode(f"<{TAG}"))


def _count(counts: dict[str, int], sources: Sequence[str]) -> None:
    for source in sources:
        counts[source] = counts.get(source, 0) + 1
