"""The calls of one stream of chat completions, kept readable for LangChain's accumulators.

They lose a call whose name and arguments come as two entries of the first chunk, join repeated names (`ff`) and calls
that share an index. Here a delta has one entry a call, a name is sent once, each call has its own index, and a cut
call is marked (see `cut_calls`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta, ChoiceDeltaToolCall

from langchain_ooospec.cut_calls import is_whole, spoiler
from langchain_ooospec.tool_deltas import tidy


@dataclass
class _Call:
    received_index: int | None
    index: int
    id: str | None
    name: str | None = None
    arguments: str = ""


class ChatCalls:
    """Follows one stream, chunk by chunk."""

    def __init__(self) -> None:
        self._choices: dict[int, _ChoiceCalls] = {}

    def read(self, chunk: ChatCompletionChunk) -> Iterator[ChatCompletionChunk]:
        """The chunk, made readable in place."""
        for choice in chunk.choices or ():
            self._choices.setdefault(choice.index, _ChoiceCalls()).read(choice)
        yield chunk


class _ChoiceCalls:
    """Follows one choice of a stream."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def read(self, choice: Choice) -> None:
        """Make the choice's delta readable."""
        received = (choice.delta.tool_calls if choice.delta else None) or []
        entries = tidy([entry.model_dump(exclude_unset=True) for entry in received])
        for entry in entries:
            self._follow(entry)
        if choice.finish_reason == "length" and self._calls:
            marks = [call for call in self._calls if call is self._calls[-1] or not is_whole(call.arguments)]
            entries = tidy([*entries, *({"index": call.index, "function": _mark(call)} for call in marks)])
            choice.delta = choice.delta or ChoiceDelta()
        if received or entries:
            choice.delta.tool_calls = [ChoiceDeltaToolCall.construct(**entry) for entry in entries]

    def _follow(self, entry: dict[str, Any]) -> None:
        function = entry["function"]
        call = self._call(entry.get("index"), entry.get("id"), function.get("name"))
        entry["index"] = call.index
        call.arguments += function.get("arguments") or ""
        if call.name is not None and function.get("name") == call.name:
            function["name"] = None
        call.name = call.name or function.get("name")

    def _call(self, index: int | None, call_id: str | None, name: str | None) -> _Call:
        """The call that an entry belongs to: some servers send several under one index, told apart by id."""
        for call in reversed(self._calls):
            if call.received_index == index and call_id in (None, "", call.id) and not (index is None and name):
                return call
        taken = {call.index for call in self._calls}
        free = max(taken, default=-1) + 1
        self._calls.append(_Call(index, free if index is None or index in taken else index, call_id or None))
        return self._calls[-1]


def _mark(call: _Call) -> dict[str, str]:
    return {"arguments": spoiler(call.arguments)}
