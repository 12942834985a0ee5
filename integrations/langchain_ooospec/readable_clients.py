"""OpenAI clients for LangChain's models: what they answer, LangChain reads right.

LangChain's own classes read what their client gives them, and callbacks and LangGraph's token streams see it before
any method of a model does. So answers are made readable here, for `ChatOoOSpec` and for models of other classes alike.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from openai_ooospec import AsyncOpenAI, OpenAI
from openai_ooospec.sdk import RawResponse

from langchain_ooospec.chat_calls import ChatCalls
from langchain_ooospec.cut_calls import mark_completion, mark_response
from langchain_ooospec.response_calls import ResponseCalls

log = logging.getLogger(__name__)


class ChatStream(openai.Stream[ChatCompletionChunk]):
    """A stream of chat completions with readable calls."""

    def __stream__(self) -> Iterator[ChatCompletionChunk]:
        calls = ChatCalls()
        for chunk in super().__stream__():
            yield from _read(calls, chunk)


class AsyncChatStream(openai.AsyncStream[ChatCompletionChunk]):
    """A stream of chat completions with readable calls."""

    async def __stream__(self) -> AsyncIterator[ChatCompletionChunk]:
        calls = ChatCalls()
        async for chunk in super().__stream__():
            for readable in _read(calls, chunk):
                yield readable


class ResponseStream(openai.Stream[ResponseStreamEvent]):
    """A stream of the Responses API with cut calls marked."""

    def __stream__(self) -> Iterator[ResponseStreamEvent]:
        calls = ResponseCalls()
        for event in super().__stream__():
            yield from _read(calls, event)


class AsyncResponseStream(openai.AsyncStream[ResponseStreamEvent]):
    """A stream of the Responses API with cut calls marked."""

    async def __stream__(self) -> AsyncIterator[ResponseStreamEvent]:
        calls = ResponseCalls()
        async for event in super().__stream__():
            for readable in _read(calls, event):
                yield readable


_STREAMS: dict[Any, Any] = {
    openai.Stream[ChatCompletionChunk]: ChatStream,
    openai.AsyncStream[ChatCompletionChunk]: AsyncChatStream,
    openai.Stream[ResponseStreamEvent]: ResponseStream,
    openai.AsyncStream[ResponseStreamEvent]: AsyncResponseStream,
}


class ReadableOpenAI(OpenAI):
    """An accelerated client whose answers LangChain reads right."""

    def request(self, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None) -> Any:
        """As `openai.OpenAI.request`, which all its methods come to."""
        answer = super().request(cast_to, options, stream=stream, stream_cls=_STREAMS.get(stream_cls, stream_cls))
        return answer if stream else _readable(answer)


class ReadableAsyncOpenAI(AsyncOpenAI):
    """An accelerated client whose answers LangChain reads right."""

    async def request(self, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None) -> Any:
        """As `openai.AsyncOpenAI.request`, which all its methods come to."""
        stream_cls = _STREAMS.get(stream_cls, stream_cls)
        answer = await super().request(cast_to, options, stream=stream, stream_cls=stream_cls)
        return answer if stream else _readable(answer)


def _read(calls: Any, received: Any) -> list[Any]:
    try:
        return list(calls.read(received))
    except Exception as problem:
        log.debug("Passed on as it came: %r", problem)
        return [received]


def _readable(answer: Any) -> Any:
    try:
        # What it parses is kept, and is what the caller gets; what it raises, the caller's own `parse` raises again.
        parsed = answer.parse() if isinstance(answer, RawResponse) else answer
        if isinstance(parsed, ChatCompletion):
            mark_completion(parsed)
        elif isinstance(parsed, Response):
            mark_response(parsed)
    except Exception as problem:
        log.debug("Passed on as it came: %r", problem)
    return answer
