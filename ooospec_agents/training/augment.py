"""Augmentation: the same request in other words, so that the sidecar learns to read schemas and to copy values.

Swapping values that stand verbatim in the conversation, hiding names, shuffling tools and adding tools that nobody
calls (the last three after Hammer, arXiv 2410.04587). Every function takes a seeded generator.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ooospec_agents.training.rows import tool_name, without_call
from ooospec_agents.training.traces import Call, Request

_SHAPES = (
    ("email", re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")),
    ("date", re.compile(r"\d{4}-\d{2}-\d{2}")),
    ("time", re.compile(r"\d{2}:\d{2}")),
    ("digits", re.compile(r"\d{2,}")),
    ("name", re.compile(r"[A-Z][a-z]+")),
    ("names", re.compile(r"[A-Z][a-z]+(?: [A-Z][a-z]+){1,2}")),
    ("code", re.compile(r"(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{4,}")),
)
MAX_TOOL_CHARS = 900
"""JSON text of a tool that is added, at most: long ones cost more than they teach."""


@dataclass(frozen=True)
class Odds:
    """How often each change is made, as probabilities."""

    swap: float = 0.5
    mask: float = 0.15
    distract: float = 0.25
    no_call: float = 0.125


@dataclass
class Pool:
    """What is drawn from: values by shape, and tools, both of the training requests."""

    values: dict[str, list[str]] = field(default_factory=dict)
    tools: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, requests: Sequence[Request]) -> Pool:
        """The values and tools of these requests."""
        pool = cls()
        for request in requests:
            pool.tools += [tool for tool in request.tools if len(json.dumps(tool)) <= MAX_TOOL_CHARS]
            for call in request.calls:
                for value in call.arguments.values():
                    if isinstance(value, str) and (name := shape(value)):
                        pool.values.setdefault(name, []).append(value)
        return pool


def shape(value: str) -> str | None:
    """What a value looks like, or None for what no other value could stand for."""
    return next((name for name, pattern in _SHAPES if pattern.fullmatch(value)), None)


def augment(request: Request, pool: Pool, rng: random.Random, odds: Odds) -> Request:
    """The request after whatever changes were drawn; tools are always shuffled."""
    if rng.random() < odds.swap:
        request = swap_values(request, pool, rng)
    if rng.random() < odds.distract:
        request = add_tools(request, pool, rng, rng.randint(1, 3))
    if rng.random() < odds.no_call:
        request = without_call(request) or request
    if rng.random() < odds.mask:
        request = mask_names(request, rng)
    return replace(request, tools=tuple(rng.sample(request.tools, len(request.tools))))


def swap_values(request: Request, pool: Pool, rng: random.Random) -> Request:
    """Values of the first call that stand verbatim in the conversation, replaced there and in the call.

    A value is left alone where the tools name it too (an option, a default, an example), or where it is part of
    another value.
    """
    if not request.calls:
        return request
    call, tools = request.calls[0], json.dumps(request.tools, ensure_ascii=False)
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    messages, arguments = request.messages, dict(call.arguments)
    for key, value in call.arguments.items():
        written = value if isinstance(value, str) else str(value)
        if isinstance(value, bool) or not isinstance(value, str | int) or written in tools:
            continue
        if sum(written in text for text in texts) > isinstance(value, str):
            continue
        other = _other(value, pool, rng)
        if other is None or not any(_stands(written, message) for message in messages):
            continue
        messages = tuple(_replaced(message, written, str(other)) for message in messages)
        arguments[key] = other
    return replace(request, messages=messages, calls=(Call(call.name, arguments), *request.calls[1:]))


def _other(value: str | int, pool: Pool, rng: random.Random) -> str | int | None:
    """Another value that looks the same."""
    if isinstance(value, int):
        if value < 2:
            return None
        digits = len(str(value))
        return rng.randint(max(2, 10 ** (digits - 1)), 10**digits - 1)
    name = shape(value)
    others = pool.values.get(name, []) if name else []
    return rng.choice(others) if others else None


def _stands(written: str, message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, str) and re.search(_whole(written), content) is not None


def _replaced(message: Mapping[str, Any], written: str, other: str) -> Mapping[str, Any]:
    content = message.get("content")
    if not isinstance(content, str):
        return message
    return {**message, "content": re.sub(_whole(written), lambda _: other, content)}


def _whole(written: str) -> str:
    """A pattern for the text standing by itself, not inside a longer word or number."""
    return rf"(?<![\w.]){re.escape(written)}(?!\w|\.\d)"


def add_tools(request: Request, pool: Pool, rng: random.Random, count: int) -> Request:
    """The request with up to `count` tools of others; never one of a name that is bound or called already."""
    names = {tool_name(tool) for tool in request.tools} | {call.name for call in request.calls}
    added = []
    for tool in rng.sample(pool.tools, min(count, len(pool.tools))):
        if tool_name(tool) not in names:
            names.add(tool_name(tool))
            added.append(tool)
    return replace(request, tools=(*request.tools, *added))


def mask_names(request: Request, rng: random.Random) -> Request:
    """The request with function names that say nothing, so that descriptions must be read.

    Only where every tool is described. Parameters of described functions are renamed where they are described.
    """
    functions = [tool.get("function") for tool in request.tools]
    if not all(isinstance(function, Mapping) and function.get("description") for function in functions):
        return request
    word = rng.choice(("func", "tool", "api", "f"))
    numbers = rng.sample(range(100), len(functions))
    names: dict[str, str] = {}
    parameters: dict[str, dict[str, str]] = {}
    tools = []
    for number, tool in zip(numbers, request.tools, strict=True):
        function = dict(tool["function"])
        old = function["name"]
        names[old] = function["name"] = f"{word}_{number}"
        schema, renamed = _masked_schema(function.get("parameters"))
        function["parameters"], parameters[old] = schema, renamed
        tools.append({**tool, "function": function})
    calls = tuple(
        Call(
            names.get(call.name, call.name),
            {parameters.get(call.name, {}).get(key, key): value for key, value in call.arguments.items()},
        )
        for call in request.calls
    )
    return replace(request, tools=tuple(tools), calls=calls)


def _masked_schema(schema: Any) -> tuple[Any, dict[str, str]]:
    """The schema with described properties renamed, and the new names by the old ones."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return schema, {}
    renamed = {}
    for number, (name, part) in enumerate(properties.items(), 1):
        described = isinstance(part, Mapping) and part.get("description")
        renamed[name] = f"arg{number}" if described and f"arg{number}" not in properties else name
    required = schema.get("required")
    changed = {**schema, "properties": {renamed[name]: part for name, part in properties.items()}}
    if isinstance(required, list):
        changed["required"] = [renamed.get(name, name) for name in required]
    return changed, renamed
