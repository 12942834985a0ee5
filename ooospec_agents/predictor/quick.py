"""The encoder's matrices in eight bits while computing too: about twice as quick on a CPU without bfloat16.

Weights are kept in eight bits, a scale a row, already; here activations are as well, scaled anew each time. torch calls
these operators deprecated without another that does the same: where they are gone, the encoder computes in float32.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from ooospec_agents.predictor.encoder import Encoder, Layer

LINEARS = ("qkv", "out", "up", "down")


class QuickLinear(nn.Module):  # type: ignore[misc]
    """A linear layer in eight bits.

    Args:
        linear: The layer that it replaces.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        scales = (weight.abs().amax(1) / 127).clamp(min=1e-8).double()
        zeros = torch.zeros(len(weight), dtype=torch.long)
        rows = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(rows, linear.bias.detach())

    def forward(self, states: Tensor) -> Tensor:
        """What the replaced layer would say, about a hundredth off."""
        # Seven bits of activations: eight could overflow where a CPU adds products in sixteen.
        out: Tensor = torch.ops.quantized.linear_dynamic(states, self._packed, True)
        return out


def quicken(encoder: Encoder) -> bool:
    """Replace the layers' matrices; False, and nothing changed, where this torch cannot."""
    made: list[tuple[Layer, str, QuickLinear]] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for layer in encoder.layers:
                assert isinstance(layer, Layer)
                made += [(layer, name, QuickLinear(getattr(layer, name))) for name in LINEARS]
            made[0][2](torch.zeros(1, encoder.shape.width))
    except (AttributeError, RuntimeError, NotImplementedError):
        return False
    encoder.keep_projections()
    for layer, name, quick in made:
        setattr(layer, name, quick)
    return True
