"""Requests and traces on disk: what was asked, what the target called, and the guard against evaluation data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class DataError(ValueError):
    """A file that cannot be trained on or evaluated. The message says which, why, and what to do."""


@dataclass(frozen=True)
class Call:
    """One function call: a name and arguments by parameter name."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """One request and its right answer.

    Attributes:
        id: The request's own id; traces are matched by it.
        source: The data set that it comes from.
        messages: Chat messages, as in the OpenAI API.
        tools: Bound tools, as in the OpenAI API.
        calls: The right answer, in order; empty: nothing is called.
        known: False where the file names no answer at all.
    """

    id: str
    source: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    calls: tuple[Call, ...] = ()
    known: bool = True


def read_requests(path: Path) -> list[Request]:
    """Requests of a JSON Lines file; the right answer is a request's `calls`, else its `gold`.

    Raises:
        DataError: A line is not a request.
    """
    return [_request(record, where) for where, record in _records(path)]


def read_traces(path: Path) -> dict[str, tuple[Call, ...]]:
    """A teacher's calls by request id. Traces that were cut off or cannot be read are left out.

    A trace that ended by itself without a call ("finish": "stop") is kept as an empty tuple: "no call".

    Raises:
        DataError: A line is not a trace.
    """
    traces: dict[str, tuple[Call, ...]] = {}
    for where, record in _records(path):
        if not isinstance(record.get("id"), str):
            msg = f"{where}: a trace needs an 'id'"
            raise DataError(msg)
        if record.get("finish") not in ("tool_calls", "stop"):
            continue
        calls = parse_calls(record.get("calls"))
        if calls is not None and (calls or record["finish"] == "stop"):
            traces[record["id"]] = calls
    return traces


def evaluation_functions(path: Path) -> frozenset[str]:
    """Names of all functions bound or called in an evaluation file, or in every `*.jsonl` of a folder.

    Raises:
        DataError: There is no such file, or the folder holds none.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        msg = f"No *.jsonl in {str(path)!r}: name the folder of the evaluation sets, or one of its files."
        raise DataError(msg)
    names: set[str] = set()
    for file in files:
        for _, record in _records(file):
            for key in ("gold", "calls"):
                names.update(call.name for call in parse_calls(record.get(key)) or ())
            names.update(_tool_names(record.get("tools")))
    return frozenset(names)


def refuse_evaluation_calls(path: Path, answers: Iterable[tuple[str, Iterable[Call]]], names: frozenset[str]) -> None:
    """Refuse training data that calls a function of the evaluation sets.

    Args:
        path: The file, for the message.
        answers: Request ids and their calls.
        names: The evaluation sets' functions.

    Raises:
        DataError: A call names one of them.
    """
    for request_id, calls in answers:
        for call in calls:
            if call.name in names:
                msg = (
                    f"{str(path)!r} calls {call.name!r} (request {request_id!r}), a function of the evaluation "
                    f"sets: figures measured there would mean nothing. Remove such requests from the file."
                )
                raise DataError(msg)


def read_training(
    requests: Path, traces: Path | None, evaluation: Path
) -> tuple[list[Request], dict[str, tuple[Call, ...]]]:
    """Requests and a target's calls to fit weights to.

    Raises:
        DataError: A file cannot be read, or calls a function of the evaluation sets.
    """
    asked = read_requests(requests)
    found = read_traces(traces) if traces else {}
    told = {one.id: found[one.id] for one in asked if one.id in found}
    forbidden = evaluation_functions(evaluation)
    refuse_evaluation_calls(requests, ((one.id, one.calls) for one in asked), forbidden)
    if traces:
        refuse_evaluation_calls(traces, told.items(), forbidden)
    return asked, told


def digests(*paths: Path | None) -> dict[str, str]:
    """SHA-256 of each file by its name."""
    return {path.name: file_digest(path) for path in paths if path}


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line's JSON object, with the words that say where it stands."""
    if not path.is_file():
        msg = f"No file {str(path)!r}: name a JSON Lines file."
        raise DataError(msg)
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{str(path)!r}, line {number}"
            try:
                record = json.loads(line)
            except ValueError as error:
                msg = f"{where}: not JSON ({error})"
                raise DataError(msg) from None
            if not isinstance(record, dict):
                msg = f"{where}: a JSON object is expected, not {type(record).__name__}"
                raise DataError(msg)
            yield where, record


def _request(record: dict[str, Any], where: str) -> Request:
    request_id, messages, tools = record.get("id"), record.get("messages"), record.get("tools")
    if not (isinstance(request_id, str) and isinstance(messages, list) and isinstance(tools, list)):
        msg = f"{where}: a request needs 'id', 'messages' and 'tools'"
        raise DataError(msg)
    answer = record.get("calls", record.get("gold"))
    calls = parse_calls(answer)
    if answer is not None and calls is None:
        msg = f"{where}: 'calls' or 'gold' must be a list of objects with 'name' and 'arguments'"
        raise DataError(msg)
    source = str(record.get("source", ""))
    return Request(request_id, source, tuple(messages), tuple(tools), calls or (), calls is not None)


def parse_calls(value: Any) -> tuple[Call, ...] | None:
    """The calls of a JSON list, arguments as an object or as JSON text; None for anything else."""
    if not isinstance(value, list):
        return None
    calls = []
    for item in value:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            return None
        arguments = item.get("arguments", {})
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return None
        if not isinstance(arguments, dict):
            return None
        calls.append(Call(item["name"], arguments))
    return tuple(calls)


def _tool_names(tools: Any) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        name = (function if isinstance(function, dict) else tool).get("name") if isinstance(tool, dict) else None
        if isinstance(name, str):
            yield name
