"""The seam between a wave and whatever completes its prompts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

ErrorKind = Literal["down", "url", "key", "model", "refused", "server", "garbage"]
"""What went wrong: nobody answers; no completions server there; key refused; no such model or adapter; this
one request refused (too long, say); the server failed; the answer is not one of a completions server."""


class SidecarError(Exception):
    """The sidecar did not answer as it should. The message says what happened and what to do.

    Args:
        kind: What went wrong.
        message: For the user, with the address.
    """

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Completion:
    """One prompt's completion.

    Attributes:
        text: The text up to the first newline.
        token_logprobs: Natural logarithm of each token's probability, the ending one included where reported.
        tokens: The tokens as text, as many as `token_logprobs`, or none.
        top: For each token, the likeliest tokens there with their logarithms, or none.
    """

    text: str
    token_logprobs: tuple[float, ...] = ()
    tokens: tuple[str, ...] = ()
    top: tuple[Mapping[str, float], ...] = ()

    @property
    def probability(self) -> float:
        """Probability of the whole text; 0.5 where the server reports none."""
        return math.exp(min(sum(self.token_logprobs), 0.0)) if self.token_logprobs else 0.5


class SidecarBackend(Protocol):
    """Whatever completes prompts."""

    async def complete(self, prompts: Sequence[str], max_tokens: int) -> list[Completion]:
        """Complete every prompt greedily, up to a newline.

        Args:
            prompts: At least one.
            max_tokens: New tokens of one prompt, at most.

        Returns:
            A completion for each prompt, in order.

        Raises:
            SidecarError: It did not work.
        """
        ...

    async def trained(self) -> bool:
        """Whether the model was trained on our prompts; another one is shown an example first.

        Raises:
            SidecarError: It cannot be known.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...
