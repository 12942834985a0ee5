"""A sidecar inside this process, for training and its report card: the same prompts and answers as a server's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ooospec_agents.sidecar.backend import Completion
from ooospec_agents.sidecar.client import TOP
from ooospec_agents.training.model import fitting_device, load_adapter, load_base
from ooospec_agents.training.rows import END

MAX_ROWS = 16
"""Prompts computed at a time."""


class LocalBackend:
    """Completes prompts greedily; what all of them share is computed once a call (see `SidecarBackend`).

    Args:
        base: Folder of the base model.
        adapter: Folder of an adapter; None: the base model as it is.
    """

    def __init__(self, base: Path, adapter: Path | None = None) -> None:
        self._device, dtype = fitting_device()
        model, self._encode, self._tokenizer = load_base(base, self._device, dtype)
        self._adapted = adapter is not None
        # Merged weights compute what base and adapter would, without the adapter's extra steps.
        merged = model if adapter is None else load_adapter(model, adapter).merge_and_unload()
        self._model = merged.eval()

    async def complete(self, prompts: Sequence[str], max_tokens: int) -> list[Completion]:
        """Complete every prompt greedily up to a newline."""
        ids = [self._encode(prompt) for prompt in prompts]
        # At least one token of each prompt is left, for its logits.
        shared = min(_shared(ids), min(map(len, ids)) - 1)
        completions: list[Completion] = []
        with torch.inference_mode():
            for start in range(0, len(ids), MAX_ROWS):
                rows = [row[shared:] for row in ids[start : start + MAX_ROWS]]
                cache = self._prefill(ids[0][:shared], len(rows))
                completions += self._decode(rows, shared, cache, max_tokens)
        return completions

    async def trained(self) -> bool:
        """Whether there is an adapter."""
        return self._adapted

    async def aclose(self) -> None:
        """Nothing is open."""

    def _prefill(self, ids: list[int], copies: int) -> Any:
        """The shared tokens' keys and values, once for each row; None where nothing is shared."""
        if not ids:
            return None
        tokens = torch.tensor([ids], device=self._device)
        cache = self._model(input_ids=tokens, use_cache=True, logits_to_keep=1).past_key_values
        cache.batch_repeat_interleave(copies)
        return cache

    def _decode(self, rows: list[list[int]], shared: int, cache: Any, max_tokens: int) -> list[Completion]:
        """Rows padded at their left, between the shared tokens and their own."""
        width = max(map(len, rows))
        pads = torch.tensor([width - len(row) for row in rows], device=self._device)
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rows], device=self._device)
        own = torch.arange(width, device=self._device)[None, :] - pads[:, None]
        seen = torch.cat([torch.ones(len(rows), shared, device=self._device).long(), (own >= 0).long()], dim=1)
        positions = shared + own.clamp(min=0)
        answers: list[list[tuple[str, float, dict[str, float]]]] = [[] for _ in rows]
        open_rows = set(range(len(rows)))
        for _ in range(max_tokens):
            out = self._model(
                input_ids=ids,
                attention_mask=seen,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = out.past_key_values
            logprobs = out.logits[:, -1].float().log_softmax(-1)
            values, tokens = logprobs.topk(TOP)
            for row in list(open_rows):
                words = [self._tokenizer.decode([token]) for token in tokens[row].tolist()]
                top = dict(zip(words, values[row].tolist(), strict=True))
                answers[row].append((words[0], values[row, 0].item(), top))
                if END in words[0] or tokens[row, 0].item() == self._tokenizer.eos_token_id:
                    open_rows.discard(row)
            if not open_rows:
                break
            ids = tokens[:, :1]
            seen = torch.cat([seen, torch.ones(len(rows), 1, device=self._device).long()], dim=1)
            positions = positions[:, -1:] + 1
        return [_completion(answer) for answer in answers]


def _shared(ids: Sequence[list[int]]) -> int:
    """Tokens at the start that all prompts have."""
    first, last = min(ids), max(ids)
    return next((i for i, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))


def _completion(answer: list[tuple[str, float, dict[str, float]]]) -> Completion:
    text = "".join(word for word, _, _ in answer).split(END, 1)[0]
    return Completion(
        text=text,
        token_logprobs=tuple(logprob for _, logprob, _ in answer),
        tokens=tuple(word for word, _, _ in answer),
        top=tuple(top for _, _, top in answer),
    )
