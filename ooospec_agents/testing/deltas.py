"""A reply cut into the deltas of a stream, in every shape that servers are known to send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ooospec_agents.testing.script import Call, Reply

Delta = dict[str, Any]


def deltas(reply: Reply) -> Iterator[Delta]:
    """The deltas of one choice, in order, without the finish reason."""
    if reply.shape != "first_burst" or not reply.calls:
        yield {"role": "assistant", "content": ""}
    if reply.reasoning:
        for piece in pieces(reply.reasoning, 3):
            yield {"reasoning": piece}
    if reply.content and not (reply.shape == "content_and_call" and reply.calls):
        for piece in pieces(reply.content, 4):
            yield {"content": piece}
    if reply.calls:
        yield from _SHAPES[reply.shape](reply)


def call_id(call: Call, index: int) -> str:
    """The id that the call carries on the wire."""
    return call.id or f"call_{index}"


def pieces(text: str, count: int) -> list[str]:
    """The text in at most so many pieces of one size; none of an empty text."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _opening(call: Call, index: int, **function: Any) -> dict[str, Any]:
    head = {"name": call.name, **function}
    return {"index": index, "id": call_id(call, index), "type": "function", "function": head}


def _arguments(index: int, text: str) -> dict[str, Any]:
    return {"index": index, "function": {"arguments": text}}


def _tools(*entries: dict[str, Any], **more: Any) -> Delta:
    return {**more, "tool_calls": list(entries)}


def _plain(reply: Reply) -> Iterator[Delta]:
    for index, call in enumerate(reply.calls):
        yield _tools(_opening(call, index, arguments=""))
        for piece in pieces(call.arguments_text(), 3):
            yield _tools(_arguments(index, piece))


def _burst(reply: Reply) -> Iterator[Delta]:
    for index, call in enumerate(reply.calls):
        first, *rest = pieces(call.arguments_text(), 2)
        yield _tools(_opening(call, index), _arguments(index, first))
        for piece in rest:
            yield _tools(_arguments(index, piece))


def _first_burst(reply: Reply) -> Iterator[Delta]:
    first, *rest = _burst(reply)
    yield {"role": "assistant", "content": None, **first}
    yield from rest


def _whole_calls(reply: Reply) -> Iterator[Delta]:
    yield _tools(*(_opening(call, i, arguments=call.arguments_text()) for i, call in enumerate(reply.calls)))


def _interleaved(reply: Reply) -> Iterator[Delta]:
    yield _tools(*(_opening(call, index, arguments="") for index, call in enumerate(reply.calls)))
    cut = [pieces(call.arguments_text(), 3) for call in reply.calls]
    for turn in range(max(len(parts) for parts in cut)):
        for index, parts in enumerate(cut):
            if turn < len(parts):
                yield _tools(_arguments(index, parts[turn]))


def _same_index(reply: Reply) -> Iterator[Delta]:
    for index, call in enumerate(reply.calls):
        yield _tools({**_opening(call, index, arguments=call.arguments_text()), "index": 0})


def _no_arguments(reply: Reply) -> Iterator[Delta]:
    for index, call in enumerate(reply.calls):
        yield _tools(_opening(call, index))


def _empty_arguments(reply: Reply) -> Iterator[Delta]:
    for index, call in enumerate(reply.calls):
        yield _tools(_opening(call, index, arguments=""))


def _repeated_name(reply: Reply) -> Iterator[Delta]:
    for index, call in enumerate(reply.calls):
        first, *rest = pieces(call.arguments_text(), 2)
        yield _tools(_opening(call, index, arguments=first))
        yield _tools(_opening(call, index, arguments="".join(rest)))


def _content_and_call(reply: Reply) -> Iterator[Delta]:
    for index, call in enumerate(reply.calls):
        content = {"content": reply.content} if index == 0 else {}
        yield _tools(_opening(call, index, arguments=call.arguments_text()), **content)


def _null_content(reply: Reply) -> Iterator[Delta]:
    for delta in _plain(reply):
        yield {"content": None, **delta}


def _split_surrogates(reply: Reply) -> Iterator[Delta]:
    for index, call in enumerate(reply.calls):
        yield _tools(_opening(call, index, arguments=""))
        escaped = "".join(_escape(character) for character in call.arguments_text())
        for start in range(0, len(escaped), 5):
            yield _tools(_arguments(index, escaped[start : start + 5]))


def _escape(character: str) -> str:
    units = character.encode("utf-16-be")
    if len(units) == 2:
        return character
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in (0, 2))


def _null_function(reply: Reply) -> Iterator[Delta]:
    yield from _plain(reply)
    yield _tools({"index": 0, "function": None})


def _no_index(reply: Reply) -> Iterator[Delta]:
    entries = []
    for index, call in enumerate(reply.calls):
        entry = _opening(call, index, arguments=call.arguments_text())
        del entry["index"]
        entries.append(entry)
    yield _tools(*entries)


_SHAPES = {
    "plain": _plain,
    "burst": _burst,
    "first_burst": _first_burst,
    "whole_calls": _whole_calls,
    "interleaved": _interleaved,
    "same_index": _same_index,
    "no_arguments": _no_arguments,
    "empty_arguments": _empty_arguments,
    "repeated_name": _repeated_name,
    "content_and_call": _content_and_call,
    "null_content": _null_content,
    "split_surrogates": _split_surrogates,
    "null_function": _null_function,
    "no_index": _no_index,
}
