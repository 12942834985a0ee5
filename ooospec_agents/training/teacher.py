"""A teacher's calls: every request asked of a server, and what it called written down, a line each."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

import httpx

from ooospec_agents.catalog import Catalog
from ooospec_agents.training.traces import Call, DataError, Request, parse_calls

ToolChoice = Literal["auto", "required"]
Finish = Literal["tool_calls", "stop", "length", "unread"]
"""How an answer ended: with calls; in text alone; cut off; with a call that the server did not read as one."""
TIMEOUT_S = 600.0
"""Longest wait for one answer."""


@dataclass
class Tally:
    """How many answers ended how, and what went wrong.

    Attributes:
        ends: Answers by their end.
        refused: Answers that called a function of the evaluation sets; they are not written.
        failed: Requests without an answer; the same command asks them again.
        problem: What the first of these came to.
    """

    ends: dict[Finish, int] = field(default_factory=dict)
    refused: int = 0
    failed: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Teacher:
    """Where and how the calls are asked for.

    Attributes:
        url: The server's root.
        model: The model's name there.
        tool_choice: Whether it must call something.
        max_tokens: New tokens of one answer, at most; longer ones are cut off, and not trained on.
        api_key: The server's key, or "".
        parallel: Requests at once.
    """

    url: str
    model: str
    tool_choice: ToolChoice = "required"
    max_tokens: int = 512
    api_key: str = ""
    parallel: int = 4


def client_for(teacher: Teacher) -> httpx.AsyncClient:
    """Connections to the teacher's server."""
    headers = {"authorization": f"Bearer {teacher.api_key}"} if teacher.api_key else {}
    return httpx.AsyncClient(base_url=teacher.url, headers=headers, timeout=TIMEOUT_S)


async def first_model(teacher_url: str, api_key: str = "") -> str:
    """The name of the first model that a server has.

    Raises:
        DataError: It cannot be reached, or says nothing of models.
    """
    async with client_for(Teacher(teacher_url, "", api_key=api_key)) as client:
        try:
            response = await client.get("/v1/models")
            response.raise_for_status()
            return str(response.json()["data"][0]["id"])
        except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
            msg = f"The teacher at {teacher_url!r} names no model ({error!r}): is it up, and is the key right?"
            raise DataError(msg) from error


def answered(path: Path) -> frozenset[str]:
    """Ids of the requests that a file of traces already has.

    A last line that a stop has cut in two is taken off the file.
    """
    if not path.is_file():
        return frozenset()
    whole, ids = 0, set()
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            try:
                ids.add(json.loads(line)["id"])
            except (ValueError, LookupError, TypeError) as error:
                msg = f"{str(path)!r} holds what is no trace ({error!r}): name another file for the traces."
                raise DataError(msg) from error
    if whole < path.stat().st_size:
        with path.open("rb+") as file:
            file.truncate(whole)
    return frozenset(ids)


async def collect(
    teacher: Teacher,
    requests: Sequence[Request],
    out: TextIO,
    forbidden: frozenset[str] = frozenset(),
    done: Callable[[], None] = lambda: None,
) -> Tally:
    """Ask every request and write its trace as soon as it is there, in the order of arrival.

    Args:
        teacher: Whom to ask.
        requests: What to ask.
        out: Where a line for each trace goes.
        forbidden: Functions of the evaluation sets: an answer that calls one is left out.
        done: Called after each request.

    Raises:
        DataError: The server cannot be reached.
    """
    tally, waiting = Tally(), iter(requests)

    async def work(client: httpx.AsyncClient) -> None:
        for request in waiting:
            trace = await _ask(client, teacher, request, tally)
            if trace is not None:
                if any(call["name"] in forbidden for call in trace["calls"]):
                    tally.refused += 1
                else:
                    end: Finish = trace["finish"]
                    tally.ends[end] = tally.ends.get(end, 0) + 1
                    out.write(json.dumps(trace, ensure_ascii=False) + "\n")
                    out.flush()
            done()

    async with client_for(teacher) as client:
        workers: list[Awaitable[None]] = [work(client) for _ in range(teacher.parallel)]
        await asyncio.gather(*workers)
    return tally


async def _ask(client: httpx.AsyncClient, teacher: Teacher, request: Request, tally: Tally) -> dict[str, Any] | None:
    """One request's trace; None, and counted, where the server refuses it."""
    body = {
        "model": teacher.model,
        "messages": list(request.messages),
        "tools": list(request.tools),
        "tool_choice": teacher.tool_choice,
        "temperature": 0.0,
        "max_tokens": teacher.max_tokens,
    }
    try:
        response = await client.post("/v1/chat/completions", json=body)
        if response.status_code != httpx.codes.OK:
            _note_failure(tally, f"{response.status_code}: {response.text[:200]}")
            return None
        return _trace(request, response.json())
    except httpx.TransportError as error:
        msg = f"The teacher at {teacher.url!r} cannot be reached ({error!r}): the same command goes on from here."
        raise DataError(msg) from error
    except (ValueError, LookupError, TypeError) as error:
        _note_failure(tally, f"an answer that is none: {error!r}")
        return None


def _note_failure(tally: Tally, problem: str) -> None:
    tally.failed += 1
    tally.problem = tally.problem or problem


def _trace(request: Request, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as a trace. Calls are kept only where all of them can be read and the answer was not cut off."""
    choice, usage = answer["choices"][0], answer.get("usage") or {}
    message = choice["message"]
    written = [call["function"] for call in message.get("tool_calls") or []]
    calls = [{"name": call["name"], "arguments": call["arguments"]} for call in written]
    finish = _finish(request, str(choice.get("finish_reason")), parse_calls(calls), str(message.get("content") or ""))
    return {
        "id": request.id,
        "calls": calls if finish == "tool_calls" else [],
        "finish": finish,
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
    }


def _finish(request: Request, reason: str, calls: tuple[Call, ...] | None, text: str) -> Finish:
    if reason == "length":
        return "length"
    if calls is None:
        return "unread"
    if calls:
        return "tool_calls"
    names = [function.name for function in Catalog.from_tools(list(request.tools)).functions]
    return "unread" if _looks_called(text, names) else "stop"


def _looks_called(text: str, names: Sequence[str]) -> bool:
    """Whether a text has what could be a call of one of these functions, in whichever format."""
    any_name = "|".join(map(re.escape, names))
    return bool(names) and re.search(rf'["=\n]({any_name})[">\s]*[(\{{">,]', f"\n{text}") is not None
