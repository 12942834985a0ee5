"""A reply in the form of OpenAI's Responses API, whole and as a stream's events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ooospec_agents.testing.deltas import call_id, pieces
from ooospec_agents.testing.script import Reply

Item = dict[str, Any]


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """A Responses request in the form of a chat request, for scripts, which know only that."""
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given or [])
    chat = {**body, "messages": [_message(item) for item in items]}
    if "tools" in body:
        chat["tools"] = [
            {"type": "function", "function": tool} if tool.get("type") == "function" else tool for tool in body["tools"]
        ]
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        chat["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    wish = (body.get("text") or {}).get("format") or {}
    if wish:
        chat["response_format"] = {"type": wish.get("type"), "json_schema": wish}
    return chat


def response(number: int, reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    """The whole response."""
    tokens = reply.token_count()
    usage = {
        "input_tokens": 10,
        "output_tokens": tokens,
        "total_tokens": 10 + tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole = {**_head(number, body), "status": "completed", "output": _items(number, reply), "usage": usage}
    if reply.reason() == "length":
        whole |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return whole


def events(number: int, reply: Reply, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a stream, in order."""
    for sequence, event in enumerate(_events(number, reply, body)):
        yield {**event, "sequence_number": sequence}


def _message(item: Mapping[str, Any]) -> Mapping[str, Any]:
    if item.get("type") == "function_call_output":
        return {"role": "tool", "content": item.get("output"), "tool_call_id": item.get("call_id")}
    return item if "role" in item else {"role": "assistant", "content": ""}


def _head(number: int, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": body.get("model"),
        "parallel_tool_calls": True,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
    }


def _items(number: int, reply: Reply) -> list[Item]:
    items: list[Item] = []
    if reply.content is not None or not reply.calls:
        part = {"type": "output_text", "text": reply.content or "", "annotations": []}
        items.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [part]})
    for index, call in enumerate(reply.calls):
        item = {"type": "function_call", "id": f"fc_{number}_{index}", "call_id": call_id(call, index)}
        items.append({**item, "name": call.name, "arguments": call.arguments_text()})
    return [{**item, "status": "completed"} for item in items]


def _events(number: int, reply: Reply, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    started = {**_head(number, body), "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": started}
    for index, item in enumerate(_items(number, reply)):
        at = {"output_index": index, "item_id": item["id"]}
        empty: Item = {"content": []} if item["type"] == "message" else {"arguments": ""}
        added = {**item, **empty, "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        if item["type"] == "message":
            yield from _text_events(at, item["content"][0])
        else:
            for piece in pieces(item["arguments"], 3):
                yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **at, **done}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    whole = response(number, reply, body)
    # So it ends in vLLM also where the answer was cut, which the status says.
    yield {"type": "response.completed", "response": whole}


def _text_events(at: dict[str, Any], part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    at = {**at, "content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"], 3):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}
