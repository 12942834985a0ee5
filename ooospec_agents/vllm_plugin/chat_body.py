"""Reads what we must know from a request's JSON body, in the Chat Completions or the Responses form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ooospec_agents.drafting.request import METHODS, Method

RESERVED = "ooospec"
"""Every name in `vllm_xargs` that begins so is ours."""
MAX_SCOPE_CHARS = 128


class BodyError(ValueError):
    """A body that we do not understand. vLLM says to the client what is wrong with it, if anything is."""


@dataclass(frozen=True)
class Wishes:
    """What a client asks of us in `vllm_xargs`.

    Attributes:
        method: How to draft; None: not said.
        client_id: The client's own id of the request, for which it will post a hint; "" if none.
        scope: A store of the client's own.
        hint: A hint's JSON text that came with the request; "" if none.
        replay: Recorded token ids to be drafted, or None.
        seeded: Whether to draft although the request has a seed.
        report: Whether the response shall carry the report.
    """

    method: Method | None = None
    client_id: str = ""
    scope: str = ""
    hint: str = ""
    replay: list[Any] | None = None
    seeded: bool = False
    report: bool = False


def take_wishes(body: dict[str, Any]) -> Wishes:
    """Take our part out of the body's `vllm_xargs`; what a client must not set is gone after this.

    Raises:
        BodyError: A value of ours has a wrong type. Our part was taken out all the same.
    """
    xargs = body.get("vllm_xargs")
    if xargs is None:
        return Wishes()
    if not isinstance(xargs, dict):
        msg = f"vllm_xargs is {type(xargs).__name__!r}, not an object"
        raise BodyError(msg)
    ours = {name: xargs.pop(name) for name in list(xargs) if name.startswith(RESERVED)}
    method = ours.get("ooospec")
    if method is not None and method not in METHODS:
        msg = f"vllm_xargs.ooospec is {method!r}, not one of {', '.join(METHODS)}"
        raise BodyError(msg)
    replay = ours.get("ooospec_replay")
    hint = ours.get("ooospec_hint", "")
    if not isinstance(replay, list | None) or not isinstance(hint, str):
        msg = "vllm_xargs.ooospec_replay must be a list of token ids, vllm_xargs.ooospec_hint JSON text"
        raise BodyError(msg)
    return Wishes(
        method=cast("Method | None", method),
        client_id=str(ours.get("ooospec_id", "")),
        scope=str(ours.get("ooospec_scope", ""))[:MAX_SCOPE_CHARS],
        hint=hint,
        replay=replay,
        seeded=bool(ours.get("ooospec_seeded")),
        report=bool(ours.get("ooospec_report")),
    )


def tools_of(body: Mapping[str, Any]) -> list[Any]:
    """The bound tools; [] if there are none."""
    tools = body.get("tools")
    return tools if isinstance(tools, list) else []
