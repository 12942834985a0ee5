"""Packing: what questions share stands once, all questions after it, and each sees what the server would show it.

Several requests may stand in one sequence. A token sees its own request's shared tokens and its own question, up
to itself; positions of every question go on where the shared tokens end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ooospec_agents.training.layout import Part


@dataclass(frozen=True)
class Packed:
    """Requests in one sequence of T tokens, with N tokens to be predicted.

    Attributes:
        ids: Token ids, [1, T].
        positions: Positions, [1, T].
        mask: Added to attention scores, [1, 1, T, T]: 0 where a token sees another, the dtype's least elsewhere.
        predict: Indexes of the hidden states that predict, [N].
        targets: Token ids to be predicted, [N].
        weights: Loss weights, [N].
    """

    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    predict: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor


def pack(parts: Sequence[Part], dtype: torch.dtype, device: torch.device | str = "cpu") -> Packed:
    """Several requests in one sequence."""
    ids: list[int] = []
    positions: list[int] = []
    segments: list[int] = []
    owners: list[int] = []
    predict: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    for number, part in enumerate(parts):
        start = len(ids)
        ids += part.ids
        positions += part.positions
        segments += part.segments
        owners += [number] * len(part.ids)
        for index, token, weight in part.targets:
            predict.append(start + index)
            targets.append(token)
            weights.append(weight)
    return Packed(
        ids=torch.tensor([ids], device=device),
        positions=torch.tensor([positions], device=device),
        mask=_mask(torch.tensor(segments, device=device), torch.tensor(owners, device=device), dtype),
        predict=torch.tensor(predict, device=device),
        targets=torch.tensor(targets, device=device),
        weights=torch.tensor(weights, device=device),
    )


def _mask(segments: torch.Tensor, owners: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    size = len(segments)
    order = torch.arange(size, device=segments.device)
    seen = order[None, :] <= order[:, None]
    seen &= owners[None, :] == owners[:, None]
    seen &= (segments[None, :] == 0) | (segments[None, :] == segments[:, None])
    mask = torch.zeros(size, size, dtype=dtype, device=segments.device)
    return mask.masked_fill_(~seen, torch.finfo(dtype).min)[None, None]
