"""The calls of one stream, kept readable for LangChain's accumulators.

They join repeated names (`ff`) and calls that share an index, and close open strings and braces, so that a call
which `max_tokens` cut, such as `{"to": "ann`, reads as a whole one and an agent runs it half-told. Here a name is
sent once, each call has its own index, and a cut call gets one more piece that no reader can complete: it becomes an
invalid call, as in an answer that was not streamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.utils.json import parse_partial_json

_ENDINGS = ("]", "}", '"]', '"}', '\\"]', '\\"}')


@dataclass
class _Call:
    received_index: int
    index: int
    id: str | None
    name: str | None = None
    arguments: str = ""


class StreamedCalls:
    """Follows one stream, chunk by chunk."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def read(self, chunk: ChatGenerationChunk) -> Iterator[ChatGenerationChunk]:
        """The chunk, and after the last one what marks its calls as cut, if they are."""
        message = chunk.message
        for piece in message.tool_call_chunks if isinstance(message, AIMessageChunk) else ():
            if piece["index"] is None:
                continue  # such pieces are never joined
            call = self._call(piece["index"], piece["id"])
            piece["index"] = call.index
            call.arguments += piece["args"] or ""
            if call.name is not None and piece["name"] == call.name:
                piece["name"] = None
            call.name = call.name or piece["name"]
        yield chunk
        if (chunk.generation_info or {}).get("finish_reason") == "length":
            marks = [
                tool_call_chunk(args=_spoiler(call.arguments), id=call.id, index=call.index)
                for call in self._calls
                if not _is_whole(call.arguments)
            ]
            if marks:
                yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=marks))

    def _call(self, index: int, call_id: str | None) -> _Call:
        """The call that a piece belongs to: some servers send several under one index, told apart by id."""
        for call in reversed(self._calls):
            if call.received_index == index and call_id in (None, "", call.id):
                return call
        taken = {call.index for call in self._calls}
        own = max(taken) + 1 if index in taken else index
        self._calls.append(_Call(index, own, call_id or None))
        return self._calls[-1]


def _is_whole(arguments: str) -> bool:
    try:
        json.loads(arguments, strict=False)
    except ValueError:
        return False
    return True


def _spoiler(arguments: str) -> str:
    """The shortest ending with which LangChain's own reader finds no call."""
    for ending in _ENDINGS:
        try:
            if not isinstance(parse_partial_json(arguments + ending), dict):
                return ending
        except ValueError:
            return ending
    return _ENDINGS[0]
