"""Accelerated twins of clients that already exist."""

from __future__ import annotations

from typing import Any, TypeVar

import openai

from openai_ooospec.clients import AsyncOpenAI, OpenAI
from openai_ooospec.connections import shared

_CREDENTIALS = ("workload_identity", "_provider")

SyncT = TypeVar("SyncT", bound=OpenAI)
AsyncT = TypeVar("AsyncT", bound=AsyncOpenAI)


def accelerate_client(client: openai.OpenAI, **sidecar: Any) -> OpenAI:
    """An accelerated client with the same settings and the same HTTP client; the given one is left as it is.

    Args:
        client: Any `openai.OpenAI`.
        sidecar: `sidecar`, `sidecar_model` and `sidecar_api_key`, as `OpenAI` takes them.

    Raises:
        TypeError: The client is of another class, such as Azure's, or signs requests otherwise than by an API key.
    """
    return twin(client, OpenAI, **sidecar)


def accelerate_async_client(client: openai.AsyncOpenAI, *, share_http: bool = True, **sidecar: Any) -> AsyncOpenAI:
    """An accelerated client with the same settings; the given one is left as it is.

    Args:
        client: Any `openai.AsyncOpenAI`.
        share_http: Use the given client's own HTTP client, which belongs to one event loop. Otherwise each
            loop has connections of its own, which all such clients share and which close with their loop.
        sidecar: `sidecar`, `sidecar_model` and `sidecar_api_key`, as `AsyncOpenAI` takes them.

    Raises:
        TypeError: The client is of another class, such as Azure's, or signs requests otherwise than by an API key.
    """
    return async_twin(client, AsyncOpenAI, share_http=share_http, **sidecar)


def twin(client: openai.OpenAI, kind: type[SyncT], **sidecar: Any) -> SyncT:
    """As `accelerate_client`, of a class of our own."""
    return kind(**_settings(client, kind), http_client=client._client, **sidecar)


def async_twin(client: openai.AsyncOpenAI, kind: type[AsyncT], *, share_http: bool, **sidecar: Any) -> AsyncT:
    """As `accelerate_async_client`, of a class of our own."""
    connections = None if share_http else shared
    return kind(**_settings(client, kind), http_client=client._client, _connections=connections, **sidecar)


def _settings(client: openai.OpenAI | openai.AsyncOpenAI, kind: type) -> dict[str, Any]:
    if type(client) not in (openai.OpenAI, openai.AsyncOpenAI, OpenAI, AsyncOpenAI, kind):
        # A subclass, such as Azure's, holds settings that cannot be carried over.
        msg = f"cannot accelerate a {type(client).__name__!r}: only OpenAI and AsyncOpenAI clients"
        raise TypeError(msg)
    if signs_otherwise := [name for name in _CREDENTIALS if getattr(client, name, None) is not None]:
        # Newer SDKs have them; a twin with an API key alone would be refused by the server.
        msg = f"cannot accelerate a client that signs requests by {signs_otherwise[0].strip('_')!r}, not by an API key"
        raise TypeError(msg)
    try:
        return _constructor_arguments(client)
    except AttributeError as problem:
        msg = f"cannot read the settings of a client of openai {openai.__version__}: {problem}"
        raise TypeError(msg) from problem


def _constructor_arguments(client: openai.OpenAI | openai.AsyncOpenAI) -> dict[str, Any]:
    return {
        "api_key": client._api_key_provider or client.api_key,
        "organization": client.organization,
        "project": client.project,
        "webhook_secret": client.webhook_secret,
        "websocket_base_url": client.websocket_base_url,
        "base_url": client.base_url,
        "timeout": client.timeout,
        "max_retries": client.max_retries,
        "default_headers": client._custom_headers,
        "default_query": client._custom_query,
    }
