"""How much draft pays for itself now."""

from __future__ import annotations

from dataclasses import dataclass

FLOOR = 0.07
"""A draft token costs about a fifteenth of a decoding step on a CPU (docs/results.md); less likely ones lose."""


@dataclass(frozen=True)
class Budget:
    """Limits of one draft.

    Attributes:
        floor: Joint probability under which a token is not worth its place in the verification step.
    """

    floor: float = FLOOR
