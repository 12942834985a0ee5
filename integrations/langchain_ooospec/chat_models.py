"""`ChatOoOSpec`: `ChatOpenAI` for a target of your own, with accelerated tool calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Self

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import BaseTool
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from openai_ooospec import AsyncOpenAI, OpenAI
from openai_ooospec.sdk import Connected
from pydantic import Field, SecretStr, model_validator

from langchain_ooospec import extras
from langchain_ooospec.accelerate import accelerated_clients
from ooospec_agents._version import __version__

_PROVIDER = "ooospec"


class ChatOoOSpec(Connected, BaseChatOpenAI):
    """A chat model for OpenAI-compatible targets, with faster tool calls from `ooospec serve target`.

    It takes what `ChatOpenAI` takes, and reads the same environment variables. `bind_tools` gets target and
    sidecar ready in the background. Against a target without the plugin it is a plain chat model.

    Example:
        ```python
        model = ChatOoOSpec(model="Qwen/Qwen2.5-Coder-1.5B-Instruct", base_url="http://localhost:8000/v1")
        answer = model.bind_tools([get_weather]).invoke("How is the weather in Oslo?")
        answer.response_metadata.get("ooospec")  # what was drafted, by whom, and what was accepted
        ```
    """

    stream_usage: bool | None = True
    """Whether streams carry token usage. On, since vLLM supports it."""

    max_tokens: int | None = Field(default=None, alias="max_completion_tokens")
    """Most tokens to generate; `max_tokens` and `max_completion_tokens` are the same here."""

    sidecar: str | None = Field(default=None, exclude=True)
    """Base URL of a sidecar of the client's own. Without it the target's server uses its own."""

    sidecar_model: str | None = Field(default=None, exclude=True)
    """The model or adapter to ask the sidecar for; by default its first."""

    sidecar_api_key: SecretStr | None = Field(default=None, exclude=True)
    """The sidecar's key."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Yes: `langchain_core.load` writes it as the `ChatOpenAI` that it is without us, and gives that back.

        LangChain revives classes of a fixed list only. What it revives asks the same target; `accelerate` it for the
        rest. A sidecar of the client's own is not written. A class built on this one has to answer for itself.
        """
        return cls is ChatOoOSpec

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """`ChatOpenAI`'s."""
        return ChatOpenAI.get_lc_namespace()

    @classmethod
    def lc_id(cls) -> list[str]:
        """`ChatOpenAI`'s."""
        return ChatOpenAI.lc_id()

    @property
    def _identifying_params(self) -> dict[str, Any]:
        # By ChatOpenAI's name, as which it is written down.
        known = dict(super()._identifying_params)
        return {"max_completion_tokens" if name == "max_tokens" else name: value for name, value in known.items()}

    @property
    def lc_secrets(self) -> dict[str, str]:
        """Fields that hold secrets, with the environment variables they come from."""
        return {"openai_api_key": "OPENAI_API_KEY"}

    @model_validator(mode="after")
    def _set_ooospec_version(self) -> Self:
        add = getattr(self, "_add_version", None)  # langchain-core 1.0 keeps no versions
        if add is not None:
            add("ooospec-agents", __version__)
        return self

    @model_validator(mode="after")
    def _use_accelerated_clients(self) -> Self:
        key = self.sidecar_api_key.get_secret_value() if self.sidecar_api_key is not None else None
        settings = {"sidecar": self.sidecar, "sidecar_model": self.sidecar_model, "sidecar_api_key": key}
        for name, client in accelerated_clients(self, settings).items():
            setattr(self, name, client)
        return self

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: dict[str, Any] | str | bool | None = None,
        strict: bool | None = None,
        parallel_tool_calls: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """As `BaseChatOpenAI.bind_tools`; target and sidecar get ready for the tools in the background."""
        bound = super().bind_tools(
            tools,
            tool_choice=tool_choice,
            strict=strict,
            parallel_tool_calls=parallel_tool_calls,
            **kwargs,
        )
        client = self._accelerated_client()
        if client is not None and isinstance(bound, RunnableBinding):
            client.prepare(bound.kwargs.get("tools") or [])
        return bound

    def wait_until_known(self, timeout_s: float = 5.0) -> bool:
        """Wait until the target's status is known, after `bind_tools`. Requests never need this.

        Returns:
            Whether the target has the plugin.
        """
        client = self._accelerated_client()
        return client is not None and client.wait_until_known(timeout_s)

    def _accelerated_client(self) -> OpenAI | AsyncOpenAI | None:
        for client in (self.root_client, self.root_async_client):
            if isinstance(client, OpenAI | AsyncOpenAI):
                return client
        return None

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload = super()._get_request_payload(input_, stop=stop, **kwargs)
        if payload.get("tools") == []:
            # An agent without tools binds none; vLLM refuses an empty list, and what belongs to it.
            for name in ("tools", "tool_choice", "parallel_tool_calls"):
                payload.pop(name, None)
        return payload

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        responses = self._use_responses_api({**kwargs, **self.model_kwargs})
        return super()._stream_responses(*args, **kwargs) if responses else super()._stream(*args, **kwargs)

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        responses = self._use_responses_api({**kwargs, **self.model_kwargs})
        stream = super()._astream_responses if responses else super()._astream
        async for chunk in stream(*args, **kwargs):
            yield chunk

    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        report = extras.report(response)
        choices = response.get("choices") if isinstance(response, dict) else getattr(response, "choices", None)
        for generation, choice in zip(result.generations, choices or [], strict=False):
            answered = choice.get("message") if isinstance(choice, dict) else getattr(choice, "message", None)
            thought = extras.reasoning(answered)
            if thought is not None:
                generation.message.additional_kwargs["reasoning_content"] = thought
            if report is not None:
                generation.message.response_metadata["ooospec"] = report
        # Under OpenAI's name LangChain would leave the reasoning out of `content_blocks`.
        result.llm_output = {**(result.llm_output or {}), "model_provider": _PROVIDER}
        return result

    def _convert_chunk_to_generation_chunk(
        self,
        chunk: dict[str, Any],
        default_chunk_class: type,
        base_generation_info: dict[str, Any] | None,
    ) -> ChatGenerationChunk | None:
        generation = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if generation is None or not isinstance(generation.message, AIMessageChunk):
            return generation
        report = extras.report(chunk)
        if report is not None:
            generation.message.response_metadata["ooospec"] = report
        choices = _choices(chunk)
        if choices:
            generation.message.response_metadata["model_provider"] = _PROVIDER
        thought = extras.reasoning(choices[0].get("delta")) if choices else None
        if thought is not None:
            generation.message.additional_kwargs["reasoning_content"] = thought
        return generation

    def _get_generation_chunk_from_completion(self, completion: openai.BaseModel) -> ChatGenerationChunk:
        generation = super()._get_generation_chunk_from_completion(completion)
        # The chunks before carried it: merging would double the text.
        generation.message.additional_kwargs.pop("reasoning_content", None)
        return generation


def _choices(chunk: dict[str, Any]) -> list[Any]:
    inner = chunk.get("chunk")
    found = chunk.get("choices") or (inner.get("choices") if isinstance(inner, dict) else None)
    return found if isinstance(found, list) else []
