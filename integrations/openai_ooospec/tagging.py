"""The one place where a request of the OpenAI SDK is changed: its `extra_body` gets `vllm_xargs`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import openai

from ooospec_agents.client import SidecarSettings, TargetClient
from ooospec_agents.hint import REPORT_HEADER
from ooospec_agents.targets import target_client

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions

log = logging.getLogger(__name__)

faults: Counter[str] = Counter()
"""How often something of ours failed here, by kind."""

_PATHS = ("/chat/completions", "/responses")
_NOT_FORWARDED = {"accept", "content-type", "content-length"}


def target_of(client: openai.OpenAI | openai.AsyncOpenAI, sidecar: SidecarSettings) -> TargetClient:
    """What this process knows of the client's target."""
    return target_client(str(client.base_url), sidecar, client.api_key)


def prepare(client: openai.OpenAI | openai.AsyncOpenAI, sidecar: SidecarSettings, tools: Sequence[Any]) -> None:
    """Get target and sidecar ready for these tools, in the background. Never raises."""
    try:
        target_of(client, sidecar).prepare(tools, _headers(client, None))
    except Exception as problem:
        _fault("prepare", problem)


def tag(
    client: openai.OpenAI | openai.AsyncOpenAI, sidecar: SidecarSettings, options: FinalRequestOptions
) -> FinalRequestOptions:
    """Add `vllm_xargs` to a chat or Responses request with tools, merged into what the user passed. Never raises.

    Until the target is known to be ours only a header asks for the report: other servers pass over it.

    The options belong to one attempt, so a retry is tagged anew; the dicts in them may be the user's and are
    not changed.
    """
    try:
        if options.method.lower() != "post" or not options.url.endswith(_PATHS):
            return options
        if not isinstance(options.json_data, Mapping):
            return options
        extra = dict(options.extra_json or {})
        body: dict[str, Any] = {**options.json_data, **extra}
        if body.get("tools"):
            given = options.headers if isinstance(options.headers, Mapping) else {}
            options.headers = {REPORT_HEADER: "1", **given}
        xargs = target_of(client, sidecar).xargs(body, _headers(client, options))
        if xargs is not None:
            options.extra_json = {**extra, "vllm_xargs": xargs}
    except Exception as problem:
        _fault("tag", problem)
    return options


def _headers(client: openai.OpenAI | openai.AsyncOpenAI, options: FinalRequestOptions | None) -> dict[str, str]:
    """The headers that the target asks for: the client's, and the request's own on top."""
    own = options.headers if options is not None and isinstance(options.headers, Mapping) else {}
    merged = {
        name.lower(): value
        for headers in (client.auth_headers, client.default_headers, own)
        for name, value in headers.items()
    }
    return {name: value for name, value in merged.items() if isinstance(value, str) and name not in _NOT_FORWARDED}


def _fault(kind: str, problem: Exception) -> None:
    faults[kind] += 1
    if faults[kind] == 1:
        log.warning("Acceleration failed (%s), the request goes on without it: %r", kind, problem)
