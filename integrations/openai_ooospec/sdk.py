"""What we need of the OpenAI SDK beyond its public names, and what is said where an SDK lacks it."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, NoReturn, SupportsIndex

import openai
from openai._legacy_response import LegacyAPIResponse as RawResponse

__all__ = ["Connected", "RawResponse", "no_copy", "obstacle", "say_obstacle"]

log = logging.getLogger(__name__)


def obstacle(sync: type = openai.OpenAI, asynchronous: type = openai.AsyncOpenAI) -> str:
    """Why requests of the installed SDK cannot be tagged, and what mends it; "" if they can.

    Its clients pass every request, of any method and attempt, through `_prepare_options`, a method made to be
    overridden but not a public one.
    """
    for client in (sync, asynchronous):
        if not callable(getattr(client, "_prepare_options", None)):
            return (
                f"openai {openai.__version__} has no `{client.__name__}._prepare_options`: requests go out without "
                "acceleration; install a version that has it: pip install 'openai>=2,<4'"
            )
    return ""


@cache
def say_obstacle() -> None:
    """Warn once where requests cannot be tagged. They work, as the SDK's own do."""
    if problem := obstacle():
        log.warning("%s", problem)


def no_copy(what: str) -> str:
    """The message of a deep copy or pickle that is refused."""
    return (
        f"{what!r} holds open connections, which cannot be copied or sent to another process: share it, take "
        "a shallow copy, or make another one with the same settings there"
    )


class Connected:
    """Holds connections: shallow copies share them, deep copies and pickles are refused in clear words."""

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> NoReturn:
        """Refuse.

        Raises:
            TypeError: Always.
        """
        raise TypeError(no_copy(type(self).__name__))

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse.

        Raises:
            TypeError: Always.
        """
        raise TypeError(no_copy(type(self).__name__))
