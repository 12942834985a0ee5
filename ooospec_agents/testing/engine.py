"""A scripted engine: the real proposer and drafter under a target that writes what a script says, without vLLM.

It does to drafts what vLLM does: a step keeps the longest prefix of the draft that the target would have written
itself, and one token more. A character is a token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ooospec_agents.drafting.budget import Budget
from ooospec_agents.vllm_plugin.channel import WorkerInbox, worker_address
from ooospec_agents.vllm_plugin.drafters import Drafters
from ooospec_agents.vllm_plugin.foresight import Foresight
from ooospec_agents.vllm_plugin.proposer import Proposer

EOS = 0
VOCABULARY = 0x110000
MAX_MODEL_LEN = 32_768
PROMPT_TOKENS = 10
DRAFT_TOKENS = 40
OUTPUT_S = 0.001
"""Seconds from the end of a step to its output, at least."""


class CharacterCodec:
    """A tokenizer whose tokens are characters."""

    vocab_size = VOCABULARY

    def encode(self, text: str) -> list[int]:
        """Code points."""
        return [ord(character) for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        """The characters; the end of text is none."""
        return "".join(chr(token) for token in ids if token != EOS)


PREFILL_S = 0.03
"""Seconds until a request's first step. A real engine takes longer, and by then what was announced of it is there."""


class ScriptedEngine:
    """Decodes requests in a batch, in steps, with drafts from a proposer of our own.

    Args:
        dp_rank: Its data-parallel rank: its worker's socket is named so.
        step_s: Seconds a step takes besides our own work.

    Attributes:
        proposer: The proposer; its model runner is this engine.
        steps: Steps made.
        invalid: Drafts that would have killed a real engine.
        preempt_every: Every step of this number samples nothing, as if all rows were preempted and prefilled again.
    """

    def __init__(self, *, dp_rank: int = 0, step_s: float = 0.0) -> None:
        self.requests: dict[str, Any] = {}
        self.input_batch = SimpleNamespace(req_ids=[])
        self.max_model_len = MAX_MODEL_LEN
        self.steps = 0
        self.invalid = 0
        self.preempt_every = 0
        self.proposer = Proposer(_config(dp_rank))
        self._step_s = step_s
        self._outputs: dict[str, list[int]] = {}
        self._drafts: dict[str, list[int]] = {}
        self._queues: dict[str, asyncio.Queue[list[int] | None]] = {}
        self._number = 0
        self._running: asyncio.Task[None] | None = None
        self._bind(dp_rank)

    async def generate(self, text: str, xargs: Mapping[str, Any], max_tokens: int | None = None) -> AsyncIterator[str]:
        """Write `text`; gives what each step adds. Leaving the loop early aborts the request."""
        self._number += 1
        req_id = f"request-{self._number}"
        await asyncio.sleep(PREFILL_S)
        codec = CharacterCodec()
        self._outputs[req_id] = [*codec.encode(text), EOS]
        self._queues[req_id] = asyncio.Queue()
        self.requests[req_id] = _state(xargs, max_tokens)
        self.input_batch.req_ids.append(req_id)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        try:
            while (new := await self._queues[req_id].get()) is not None:
                yield codec.decode(new)
        finally:
            self._remove(req_id)
            del self._queues[req_id]

    def abort(self, req_id: str) -> None:
        """End a request before its end, as an engine does that is told to."""
        self._remove(req_id)
        self._queues[req_id].put_nowait(None)

    def close(self) -> None:
        """Close the worker's sockets."""
        if self.proposer._foresight is not None:
            self.proposer._foresight.close()
        if self.proposer._inbox is not None:
            self.proposer._inbox.close()
        self.proposer._outbox.close()

    async def _run(self) -> None:
        while self.input_batch.req_ids:
            outputs = self._step()
            # Reports leave before the output does, by another road.
            await asyncio.sleep(max(self._step_s, OUTPUT_S))
            for queue, new in outputs:
                queue.put_nowait(new)

    def _step(self) -> list[tuple[asyncio.Queue[list[int] | None], list[int] | None]]:
        """One step, in the order of vLLM's runner: verify, book, propose. What is to be given out after it."""
        outputs: list[tuple[asyncio.Queue[list[int] | None], list[int] | None]] = []
        self.steps += 1
        rows = list(self.input_batch.req_ids)
        sampled = [self._sample(req_id) for req_id in rows]
        for req_id, new in zip(rows, sampled, strict=True):
            self.requests[req_id].output_token_ids.extend(new)
        drafts = self.proposer.propose([list(new) for new in sampled])
        for req_id, new, draft in zip(rows, sampled, drafts, strict=True):
            self.invalid += not self._is_valid(req_id, draft)
            self._drafts[req_id] = draft
            outputs.append((self._queues[req_id], new))
            state = self.requests[req_id]
            limit = state.sampling_params.max_tokens
            if EOS in new or (limit is not None and len(state.output_token_ids) >= limit):
                self._remove(req_id)
                outputs.append((self._queues[req_id], None))
        return outputs

    def _is_valid(self, req_id: str, draft: list[int]) -> bool:
        state = self.requests[req_id]
        room = min(state.sampling_params.max_tokens or MAX_MODEL_LEN, MAX_MODEL_LEN) - len(state.output_token_ids)
        fits = len(draft) <= min(DRAFT_TOKENS, max(room, 0))
        return fits and all(type(token) is int and 0 <= token < VOCABULARY for token in draft)

    def _sample(self, req_id: str) -> list[int]:
        if self.preempt_every and self.steps % self.preempt_every == 0:
            self._drafts.pop(req_id, None)
            return []
        at = len(self.requests[req_id].output_token_ids)
        rest = self._outputs[req_id][at:]
        kept = 0
        for drafted, token in zip(self._drafts.get(req_id, ()), rest, strict=False):
            if drafted != token or token == EOS:
                break
            kept += 1
        return rest[: kept + 1]

    def _remove(self, req_id: str) -> None:
        if req_id in self.requests:
            del self.requests[req_id], self._outputs[req_id]
            self._drafts.pop(req_id, None)
            self.input_batch.req_ids.remove(req_id)

    def _bind(self, dp_rank: int) -> None:
        """What `Proposer.bind` does, but for vLLM's tokenizer and the repairs of vLLM."""
        proposer = self.proposer
        proposer.bound = True
        proposer._runner = self
        proposer._vocab_size = VOCABULARY
        proposer._make = drafters = Drafters(CharacterCodec(), Budget())
        proposer._inbox = WorkerInbox(worker_address(dp_rank))
        proposer._reason = proposer._inbox.fault
        if not proposer._reason:
            proposer._foresight = Foresight(proposer._inbox, drafters.ahead, proposer._fault)


def _config(dp_rank: int) -> Any:
    parallel = SimpleNamespace(tensor_parallel_size=1, world_size=1, data_parallel_index=dp_rank, data_parallel_rank=0)
    return SimpleNamespace(
        speculative_config=SimpleNamespace(num_speculative_tokens=DRAFT_TOKENS), parallel_config=parallel
    )


def _state(xargs: Mapping[str, Any], max_tokens: int | None) -> Any:
    params = SimpleNamespace(
        extra_args=dict(xargs),
        max_tokens=max_tokens,
        stop=[],
        stop_token_ids=[],
        eos_token_id=EOS,
        seed=None,
        temperature=0.0,
    )
    return SimpleNamespace(
        num_prompt_tokens=PROMPT_TOKENS, output_token_ids=[], sampling_params=params, lora_request=None
    )
