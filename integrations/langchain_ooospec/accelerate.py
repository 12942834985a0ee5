"""Accelerating a model that already exists: same class, same settings, our SDK clients inside."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

import openai
from langchain_openai.chat_models.base import BaseChatOpenAI
from openai_ooospec.from_client import async_twin, twin

from langchain_ooospec.readable_clients import ReadableAsyncOpenAI, ReadableOpenAI

log = logging.getLogger(__name__)

ModelT = TypeVar("ModelT", bound=BaseChatOpenAI)


def accelerate(
    model: ModelT,
    *,
    sidecar: str | None = None,
    sidecar_model: str | None = None,
    sidecar_api_key: str | None = None,
) -> ModelT:
    """A copy of the model, of its own class, whose requests are accelerated. The given one is left as it is.

    Calls are read right as by `ChatOoOSpec`: bursts, and calls that `max_tokens` cut. Reports are kept in
    `response_metadata["ooospec"]` only by `ChatOoOSpec`; other classes drop what they do not know.

    Args:
        model: A `ChatOpenAI` or any other `BaseChatOpenAI`. Accelerate first, bind tools then.
        sidecar: Base URL of a sidecar of the client's own. Without it the target's server uses its own.
        sidecar_model: The model or adapter to ask the sidecar for; by default its first.
        sidecar_api_key: The sidecar's key.

    Raises:
        TypeError: It is no `BaseChatOpenAI`.
    """
    if not isinstance(model, BaseChatOpenAI):
        msg = f"cannot accelerate a {type(model).__name__!r}: pass the chat model itself, before `bind_tools`"
        raise TypeError(msg)
    settings = {"sidecar": sidecar, "sidecar_model": sidecar_model, "sidecar_api_key": sidecar_api_key}
    return model.model_copy(update=accelerated_clients(model, settings))


def accelerated_clients(model: BaseChatOpenAI, sidecar: dict[str, str | None]) -> dict[str, Any]:
    """The model's four client fields, with accelerated clients where they can be made."""
    fields: dict[str, Any] = {}
    try:
        if isinstance(model.root_client, openai.OpenAI):
            client = twin(model.root_client, ReadableOpenAI, **sidecar)
            fields |= {"root_client": client, "client": client.chat.completions}
        if isinstance(model.root_async_client, openai.AsyncOpenAI):
            # LangChain's default HTTP client is shared by all event loops, which breaks on the second one.
            own = model.http_async_client is not None
            async_client = async_twin(model.root_async_client, ReadableAsyncOpenAI, share_http=own, **sidecar)
            fields |= {"root_async_client": async_client, "async_client": async_client.chat.completions}
    except Exception as problem:
        log.warning("%s is used without acceleration: %s", type(model).__name__, problem)
        return {}
    return fields
