"""A user's own traffic, read from what people have: OpenAI-style JSON Lines, LangSmith runs, Langfuse observations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ooospec_agents.bench.data import DataError

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
"""OpenAI's roles by LangChain's message types."""


@dataclass(frozen=True)
class Exchange:
    """One request of a model and its answer.

    Attributes:
        messages: The conversation, as OpenAI chat messages.
        tools: The tools bound to it, in OpenAI's form.
        text: The answer's text beside calls.
        calls: `{"name": str, "arguments": dict}` in order.
        reasoning_tokens: Output tokens that are not in the text, where the usage says so.
        run: Which agent run it belongs to, or "".
        seconds: How long it took, or None.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    text: str
    calls: list[dict[str, Any]] = field(default_factory=list)
    reasoning_tokens: int = 0
    run: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Traffic:
    """What a file holds.

    Attributes:
        exchanges: The exchanges that could be read.
        unread: Records that are no exchange with a model, or not in a form that is known.
        run_seconds: Seconds of each whole run, tools included, where the file tells.
    """

    exchanges: list[Exchange]
    unread: int = 0
    run_seconds: dict[str, float] = field(default_factory=dict)


def read_traffic(path: Path) -> Traffic:
    """Read an export, whichever of the forms its records have.

    Raises:
        DataError: The file is not there or holds no JSON.
    """
    exchanges, unread = [], 0
    runs: dict[str, float] = {}
    for record in _records(path):
        if (exchange := _exchange(record)) is not None:
            exchanges.append(exchange)
            continue
        unread += 1
        whole = _is_root(record)
        if whole and (seconds := _seconds(record)) is not None:
            runs[_run(record)] = seconds
    return Traffic(exchanges, unread, runs)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        msg = f"Traffic {str(path)!r} cannot be read: {error.strerror}."
        raise DataError(msg) from None
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    found = _listed(data) if data is not None else [_line(line) for line in text.splitlines() if line.strip()]
    records = [record for record in found if isinstance(record, dict)]
    if not records:
        msg = f"{str(path)!r} holds no JSON records: pass JSON Lines, or an export of LangSmith or Langfuse."
        raise DataError(msg)
    yield from records


def _listed(data: Any) -> list[Any]:
    """The records of one JSON document: a list, an object that holds one, or one record."""
    if isinstance(data, dict):
        for key in ("observations", "runs", "data", "records"):
            if isinstance(data.get(key), list):
                return list(data[key])
        return [data]
    return data if isinstance(data, list) else []


def _line(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _exchange(record: Mapping[str, Any]) -> Exchange | None:
    if "run_type" in record:
        return _langsmith(record) if record["run_type"] == "llm" else None
    if "traceId" in record or "trace_id" in record or record.get("type") == "GENERATION":
        return _langfuse(record) if str(record.get("type", "GENERATION")).upper() == "GENERATION" else None
    return _openai(record)


def _openai(record: Mapping[str, Any]) -> Exchange | None:
    """A request and its response side by side, a line of a batch, or a conversation that ends with the answer."""
    request = _part(record, "request", "body", "input")
    response = _part(_part(record, "response", "completion", "output"), "body")
    messages = request.get("messages")
    if not isinstance(messages, list):
        return None
    choices = response.get("choices")
    if isinstance(choices, list) and choices:
        answer = choices[0].get("message")
    else:
        answer = response if response.get("role") == "assistant" else None
    if answer is None and messages and messages[-1].get("role") == "assistant":
        messages, answer = messages[:-1], messages[-1]
    return _made(messages, request.get("tools"), answer, response.get("usage"), record)


def _part(record: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The first of these members that is an object, or the record itself."""
    return next((record[name] for name in names if isinstance(record.get(name), dict)), record)


def _langsmith(record: Mapping[str, Any]) -> Exchange | None:
    inputs, outputs = record.get("inputs") or {}, record.get("outputs") or {}
    messages = inputs.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[0], list):
        messages = messages[0]
    answer = outputs
    generations = outputs.get("generations")
    if isinstance(generations, list) and generations:
        first = generations[0][0] if isinstance(generations[0], list) else generations[0]
        answer = first.get("message", first)
    elif isinstance(outputs.get("choices"), list) and outputs["choices"]:
        answer = outputs["choices"][0].get("message")
    elif isinstance(outputs.get("messages"), list) and outputs["messages"]:
        answer = outputs["messages"][-1]
    extra = record.get("extra") or {}
    parameters = extra.get("invocation_params") or {}
    tools = parameters.get("tools") or inputs.get("tools")
    return _made(messages, tools, answer, outputs.get("usage") or outputs.get("usage_metadata"), record)


def _langfuse(record: Mapping[str, Any]) -> Exchange | None:
    given, answer = _parsed(record.get("input")), _parsed(record.get("output"))
    messages = given.get("messages") if isinstance(given, dict) else given
    tools = given.get("tools") if isinstance(given, dict) else None
    if isinstance(answer, list):
        answer = answer[-1] if answer else None
    if isinstance(answer, str):
        answer = {"role": "assistant", "content": answer}
    if isinstance(answer, dict) and isinstance(answer.get("choices"), list) and answer["choices"]:
        answer = answer["choices"][0].get("message")
    return _made(messages, tools or record.get("tools"), answer, record.get("usage"), record)


def _made(messages: Any, tools: Any, answer: Any, usage: Any, record: Mapping[str, Any]) -> Exchange | None:
    if not isinstance(messages, list) or not messages or not isinstance(answer, Mapping):
        return None
    said = _message(answer)
    details = usage.get("completion_tokens_details") if isinstance(usage, Mapping) else None
    hidden = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return Exchange(
        [_message(message) for message in messages if isinstance(message, Mapping)],
        _tools(tools),
        _text(said.get("content")),
        [call for call in (_call(entry) for entry in said.get("tool_calls") or []) if call is not None],
        int(hidden or 0),
        _run(record),
        _seconds(record),
    )


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message in OpenAI's form; LangChain's own, as it serialises them, are turned into it."""
    if isinstance(message.get("kwargs"), Mapping):
        kind = str((message.get("id") or ["", "human"])[-1]).removesuffix("Chunk").removesuffix("Message").lower()
        message = {"type": kind, **message["kwargs"]}
    elif isinstance(message.get("data"), Mapping) and "type" in message:
        message = {**message["data"], "type": message["type"]}
    role = message.get("role") or ROLES.get(str(message.get("type")), "user")
    out: dict[str, Any] = {"role": role, "content": message.get("content")}
    more = message.get("additional_kwargs")
    calls = message.get("tool_calls") or (more.get("tool_calls") if isinstance(more, Mapping) else None)
    if isinstance(calls, list) and calls:
        out["tool_calls"] = calls
    return out


def _call(entry: Any) -> dict[str, Any] | None:
    if not isinstance(entry, Mapping):
        return None
    inner = entry.get("function")
    function: Mapping[str, Any] = inner if isinstance(inner, Mapping) else entry
    arguments = function.get("arguments", function.get("args", {}))
    if isinstance(arguments, str):
        arguments = _line(arguments)
    if not function.get("name") or not isinstance(arguments, Mapping):
        return None
    return {"name": str(function["name"]), "arguments": dict(arguments)}


def _tools(tools: Any) -> list[dict[str, Any]]:
    found = [tool for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, Sequence) else []
    return [dict(tool) if "function" in tool else {"type": "function", "function": dict(tool)} for tool in found]


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _parsed(value: Any) -> Any:
    parsed = _line(value) if isinstance(value, str) else None
    return value if parsed is None else parsed


def _run(record: Mapping[str, Any]) -> str:
    return str(next((record[key] for key in ("trace_id", "traceId", "run", "conversation_id") if record.get(key)), ""))


def _is_root(record: Mapping[str, Any]) -> bool:
    parents = ("parent_run_id", "parentObservationId", "parent_observation_id")
    return ("run_type" in record or "traceId" in record) and not any(record.get(key) for key in parents)


def _seconds(record: Mapping[str, Any]) -> float | None:
    """How long a record's work took."""
    for name, unit in (("latency_s", 1.0), ("latency_ms", 1e-3)):
        if isinstance(record.get(name), int | float):
            return float(record[name]) * unit
    begin, end = (_time(record, names) for names in (("start_time", "startTime"), ("end_time", "endTime")))
    return (end - begin).total_seconds() if begin is not None and end is not None else None


def _time(record: Mapping[str, Any], names: Sequence[str]) -> datetime | None:
    text = next((record[name] for name in names if isinstance(record.get(name), str)), None)
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).replace(tzinfo=None) if text else None
    except ValueError:
        return None
