"""One running request in the worker: its drafter, its limits and the end of its output."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from ooospec_agents.hint import Hint


class HasTokens(Protocol):
    """A draft."""

    @property
    def tokens(self) -> list[int]:
        """Its token ids."""


class Drafts(Protocol):
    """What a row needs of a drafter; `ooospec_agents.drafting.drafter.Drafter` is one."""

    def commit(self, token_ids: Sequence[int]) -> None:
        """Take the newly committed output tokens, in order."""

    def offer(self, hint: Hint, now: float) -> None:
        """Take a hint; `now` is the monotonic clock in seconds."""

    def draft(self, limit: int) -> HasTokens:
        """At most `limit` tokens that may come next."""

    def finish(self) -> None:
        """The request ended: learn from it."""

    def report(self) -> dict[str, Any]:
        """What was drafted and accepted so far."""


def stop_ids(params: Any) -> tuple[int, ...]:
    """The ids that end a request's output, its end-of-text id first. They are the request's own: `ignore_eos`
    and generation_config change them.
    """
    ids = tuple(params.stop_token_ids or ())
    return ids if params.eos_token_id is None else (params.eos_token_id, *ids)


class Row:
    """A request that is being drafted.

    Attributes:
        hint_id: The id that hints and reports of the request carry; children of one request share it.
        reply_to: Where its reports go, or "".
        ended: Whether its last token was seen.
        committed: Output tokens handed to the drafter so far.
        stop_strings: Whether it may end by what this process cannot see, so that each step may be the last.
    """

    def __init__(
        self,
        state: Any,
        drafter: Drafts,
        *,
        hint_id: str,
        reply_to: str,
        opened_at: float,
        silent: bool,
        ahead_s: float = 0.0,
    ) -> None:
        """Follow the request of vLLM's `CachedRequestState`; `silent`: commit and report, draft nothing.

        `ahead_s` seconds were spent on it while its prompt was read: no step waited for its result.
        """
        params = state.sampling_params
        self.hint_id = hint_id
        self.reply_to = reply_to
        self.ended = False
        self.committed = 0
        self.stop_strings = bool(params.stop) or getattr(params, "repetition_detection", None) is not None
        self._drafter = drafter
        self._opened_at = opened_at
        self._silent = silent
        self._ahead_s = ahead_s
        self._prompt_tokens = int(state.num_prompt_tokens)
        self._max_tokens: int | None = params.max_tokens
        self._stop_ids = frozenset(stop_ids(params))
        self._hint_after_ms: float | None = None
        self._draft_ms_max = 0.0
        self._draft_ms_total = 0.0

    def step(
        self,
        new: Sequence[int],
        hint: Hint | None,
        *,
        width: int,
        max_model_len: int,
        vocab_size: int,
        started: float,
    ) -> list[int]:
        """Take this step's new ids and a hint that came meanwhile; the draft, valid for the engine.

        Args:
            new: The ids sampled in this step; what vLLM will cut off behind the request's end is ignored.
            hint: A hint that came since the last step, or None.
            width: Most tokens that may be drafted.
            max_model_len: Most tokens, prompt included, that the engine keeps of a request.
            vocab_size: Ids must be below.
            started: When work on this row began in this step, by `time.perf_counter`.
        """
        self._commit(new, max_model_len)
        if hint is not None and not self.ended:
            now = time.monotonic()
            if self._hint_after_ms is None:
                self._hint_after_ms = round((now - self._opened_at) * 1000.0, 3)
            self._drafter.offer(hint, now)
        draft = [] if self.ended or self._silent else self._draft(width, max_model_len, vocab_size)
        elapsed = (time.perf_counter() - started) * 1000.0
        self._draft_ms_total += elapsed
        self._draft_ms_max = max(self._draft_ms_max, elapsed)
        return draft

    @property
    def idle(self) -> bool:
        """Whether its drafter had nothing to propose when last asked; one that does not say so always has."""
        return bool(getattr(self._drafter, "idle", False))

    def finish(self) -> None:
        """The request ended properly: let the drafter learn from it."""
        self._drafter.finish()

    def report(self) -> dict[str, Any]:
        """The drafter's report, with what only the adapter knows: ids and times."""
        report = self._drafter.report()
        report["id"] = self.hint_id
        report["draft_ms_max"] = round(self._draft_ms_max, 4)
        report["draft_ms_total"] = round(self._draft_ms_total, 4)
        report["ahead_ms"] = round(self._ahead_s * 1000.0, 4)
        if self._hint_after_ms is not None and report["hint"]["arrived"]:
            report["hint"] = {**report["hint"], "after_ms": self._hint_after_ms}
        return report

    def _commit(self, new: Sequence[int], max_model_len: int) -> None:
        room = max_model_len - self._prompt_tokens - self.committed
        if self._max_tokens is not None:
            room = min(room, self._max_tokens - self.committed)
        kept = list(new[: max(room, 0)])
        for position, token in enumerate(kept):
            if token in self._stop_ids:
                del kept[position + 1 :]
                self.ended = True
                break
        self.ended = self.ended or len(kept) >= room
        self.committed += len(kept)
        if kept:
            self._drafter.commit(kept)

    def _draft(self, width: int, max_model_len: int, vocab_size: int) -> list[int]:
        limit = min(width, max_model_len - self._prompt_tokens - self.committed - 1)
        if self._max_tokens is not None:
            limit = min(limit, self._max_tokens - self.committed - 1)
        if limit <= 0:
            return []
        draft: list[int] = []
        # One id outside the vocabulary, or one token too many, kills the engine: nothing is taken on trust
        # here.
        for token in self._drafter.draft(limit).tokens[:limit]:
            if type(token) is not int or not 0 <= token < vocab_size:
                msg = f"the drafter made the token {token!r}, outside the vocabulary of {vocab_size}"
                raise ValueError(msg)
            draft.append(token)
            if token in self._stop_ids:
                break
        return draft
