"""Client x way x choice x tools x options x hint x stream x value, in pairs: always the calls of the target, as if absent."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import openai
import pytest
from allpairspy import AllPairs
from langchain_core.messages import AIMessage
from langchain_ooospec import ChatOoOSpec, accelerate
from langchain_openai import ChatOpenAI
from openai_ooospec import AsyncOpenAI, OpenAI

from ooospec_agents.testing import STREAM_SHAPES, Call, Reply, ScriptedSidecar, ScriptedTarget
from ooospec_agents.testing.fixtures import TargetMaker

Called = list[tuple[str, Any]]

TOO_LARGE = float("inf")
"""Written `1e400`, not `Infinity`."""

VALUES: dict[str, Any] = {
    "empty": "",
    "quotes": '你好 "q" \\ é\n',
    "surrogate": "a\ud800b",
    "long": "x" * 100_000,
    "infinite": float("inf"),
    "negative zero": -0.0,
    "true": True,
    "nested": {"a": {"b": [{"c": None}]}},
    "list": list(range(300)),
    "null": None,
    "too large": TOO_LARGE,
    "enum": "green",
    "const": "fixed",
    "date": "2026-11-29T12:00:00Z",
    "face": "😀",
    "markup": '</tool_call> {"name": "f"}',
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "null": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "enum": {"type": "string", "enum": ["red", "green"]},
    "const": {"const": "fixed"},
    "date": {"type": "string", "format": "date-time"},
}
NAMES = ["f", "a.b", "a-b", "工具", "n" * 64, "n" * 70, "auto", "none"]
HINTS = ["right", "wrong name", "wrong value", "half", "late", "never", "down", "slow", "garbage", "failing"]
# Shapes that the SDK reads right; LangChain's models read all, once accelerated.
READ_BY_ALL = {"plain", "burst", "whole_calls", "interleaved", "content_and_call", "null_content", "split_surrogates"}

DIMENSIONS: OrderedDict[str, list[Any]] = OrderedDict(
    client=["ours", "accelerated", "sdk"],
    way=["invoke", "ainvoke", "stream", "astream"],
    choice=["auto", "required", "any", "named", "none"],
    tools=[0, 1, 2, 5],
    strict=[None, True],
    parallel=[None, False],
    hint=HINTS,
    shape=list(STREAM_SHAPES),
    value=list(VALUES),
    name=NAMES,
)


def possible(row: list[Any]) -> bool:
    """Whether a beginning of a case makes sense."""
    case = dict(zip(DIMENSIONS, row, strict=False))
    shape, hint = case.get("shape"), case.get("hint")
    if case.get("tools") == 0 and (case.get("choice") not in ("auto", None) or hint not in ("never", None)):
        return False
    if case.get("choice") == "none" and hint not in ("never", None):
        return False
    if hint == "wrong name" and (case.get("tools") == 1 or case.get("choice") == "named"):
        return False
    if case.get("client") == "sdk" and case.get("value") == "surrogate" and case.get("way") in ("stream", "astream"):
        return False  # the SDK's own stream helper cannot read half a character
    if case.get("client") == "sdk" and shape is not None and shape not in READ_BY_ALL:
        return False
    # These shapes say nothing of arguments, or are cut in a way that fits only one call.
    return not (shape in ("no_arguments", "empty_arguments") and case.get("value") not in ("empty", None))


@dataclass(frozen=True)
class Case:
    client: str
    way: str
    choice: str
    tools: int
    strict: bool | None
    parallel: bool | None
    hint: str
    shape: Any
    value: str
    name: str

    @property
    def called(self) -> tuple[Call, ...]:
        """What the target answers."""
        if self.tools == 0 or self.choice == "none":
            return ()
        empty = self.shape in ("no_arguments", "empty_arguments")
        first = Call(self.name, {} if empty else self.written, id="a")
        alone = self.parallel is False or self.choice == "named" or self.shape == "repeated_name"
        return (first,) if alone else (first, Call(self.name, {"n": 2}, id="b"))

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of the first call."""
        return {"name": VALUES[self.value], "n": 1}

    @property
    def written(self) -> dict[str, Any] | str:
        """The same as they are sent."""
        return '{"name": 1e400, "n": 1}' if self.value == "too large" else self.arguments

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """Tools that share the name of a definition, and have an argument called "name"."""
        slots = {"name": {"$ref": "#/$defs/Value"}, "n": {"type": "integer"}}

        def value(index: int) -> dict[str, Any]:
            return {"title": f"V{index}", **SCHEMAS.get(self.value, {})}

        return [
            {
                "type": "function",
                "function": {
                    "name": self.name if index == 0 else f"other{index}",
                    "description": f"Tool number {index}.",
                    "parameters": {"type": "object", "properties": slots, "$defs": {"Value": value(index)}},
                },
            }
            for index in range(self.tools)
        ]

    @property
    def wanted(self) -> bool:
        """Whether a hint must reach the target."""
        return self.hint in ("right", "wrong name", "wrong value", "half")

    @contextlib.contextmanager
    def sidecar(self) -> Iterator[str | None]:
        """The sidecar's address, or None."""
        if self.hint == "never" or self.tools == 0 or self.choice == "none":
            yield None
            return
        if self.hint == "down":
            yield "http://127.0.0.1:9"
            return
        value = "nonsense" if self.hint == "wrong value" else json.dumps(VALUES[self.value])[:100]
        table = {
            "Which tool is called next": " 1" if self.hint == "wrong name" else " 0",
            "value of name (": " " if self.hint == "half" else f" {value}",
            "value of n (": " 1",
        }
        options: dict[str, Any] = {
            "late": {"delay_s": 0.05},
            "slow": {"delay_s": 0.5},
            "garbage": {"garbage": "<html>"},
            "failing": {"status": 500},
        }.get(self.hint, {})
        with ScriptedSidecar(table, **options) as sidecar:
            yield sidecar.url


CASES = [Case(*row) for row in AllPairs(DIMENSIONS, filter_func=possible)]


def test_the_matrix_has_every_value() -> None:
    for dimension, values in DIMENSIONS.items():
        assert {getattr(case, dimension) for case in CASES} == set(values)
    assert len(CASES) > 100


def ask(case: Case, target: ScriptedTarget, sidecar: str | None, *, stock: bool = False) -> tuple[Called, Any]:
    """Asks as the case says; returns the calls, and the report where the client shows it."""
    if case.client == "sdk":
        return ask_sdk(case, target, sidecar, stock=stock)
    options: dict[str, Any] = {"model": "scripted", "base_url": target.base_url, "api_key": "key", "max_retries": 0}
    model: Any
    if stock:
        model = ChatOpenAI(**options)
    elif case.client == "ours":
        model = ChatOoOSpec(**options, sidecar=sidecar)
    else:
        model = accelerate(ChatOpenAI(**options), sidecar=sidecar)
    if not stock:
        model.root_client.prepare(case.definitions)
        assert model.root_client.wait_until_known()
    if case.tools:
        choice = case.name if case.choice == "named" else case.choice
        if case.choice != "named" and choice == case.name:
            choice = {"auto": None}.get(choice, choice)  # a tool of that name would be meant
        model = model.bind_tools(
            case.definitions, tool_choice=choice, strict=case.strict, parallel_tool_calls=case.parallel
        )
    # The stock model's asynchronous connections outlive their event loop; what it asks for is the same.
    message = _ways(case.way.removeprefix("a") if stock else case.way)(model)
    assert message.invalid_tool_calls == []
    return [(call["name"], call["args"]) for call in message.tool_calls], message.response_metadata.get("ooospec")


def _ways(way: str) -> Any:
    def total(chunks: list[Any]) -> AIMessage:
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        return whole

    async def astream(model: Any) -> list[Any]:
        return [chunk async for chunk in model.astream("Go")]

    return {
        "invoke": lambda model: model.invoke("Go"),
        "ainvoke": lambda model: asyncio.run(model.ainvoke("Go")),
        "stream": lambda model: total(list(model.stream("Go"))),
        "astream": lambda model: total(asyncio.run(astream(model))),
    }[way]


def ask_sdk(case: Case, target: ScriptedTarget, sidecar: str | None, *, stock: bool) -> tuple[Called, Any]:
    body: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "Go"}]}
    if case.tools:
        definitions = case.definitions
        for one in definitions if case.strict else ():
            one["function"]["strict"] = True
        named = {"type": "function", "function": {"name": case.name}}
        choices: dict[str, Any] = {"named": named, "any": "required"}
        body |= {"tools": definitions, "tool_choice": choices.get(case.choice, case.choice)}
        if case.parallel is not None:
            body["parallel_tool_calls"] = case.parallel
    options: dict[str, Any] = {"base_url": target.base_url, "api_key": "key", "max_retries": 0}
    ours = {} if stock else {"sidecar": sidecar}
    if case.way in ("invoke", "stream"):
        with (openai.OpenAI if stock else OpenAI)(**options, **ours) as client:
            if isinstance(client, OpenAI):
                client.prepare(case.definitions)
                assert client.wait_until_known()
            if case.way == "invoke":
                answer: Any = client.chat.completions.create(**body)
            else:
                with client.chat.completions.stream(**body) as stream:
                    answer = stream.get_final_completion()
    else:
        answer = asyncio.run(_ask_async(case, body, options, ours, stock=stock))
    message = answer.choices[0].message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    return calls, None


async def _ask_async(case: Case, body: Any, options: Any, ours: Any, *, stock: bool) -> Any:
    async with (openai.AsyncOpenAI if stock else AsyncOpenAI)(**options, **ours) as client:
        if isinstance(client, AsyncOpenAI):
            client.prepare(case.definitions)
            assert await asyncio.to_thread(client.wait_until_known)
        if case.way == "ainvoke":
            return await client.chat.completions.create(**body)
        async with client.chat.completions.stream(**body) as stream:
            return await stream.get_final_completion()


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(value) for value in vars(case).values()))
def test_the_targets_calls_come_as_if_we_were_absent(scripted_target: TargetMaker, case: Case) -> None:
    reply = Reply(content="So:", calls=case.called, shape=case.shape, wait_for_hint_s=5.0 if case.wanted else 0.0)
    target, plain = scripted_target(reply), scripted_target(Reply(content="So:", calls=case.called), plugin=False)
    with case.sidecar() as sidecar:
        calls, report = ask(case, target, sidecar)
    sent = [(call.name, case.arguments if isinstance(call.arguments, str) else call.arguments) for call in case.called]
    assert calls == sent
    ask(case, plain, None, stock=True)
    (ours,), (theirs,) = target.chats, plain.chats
    added = ours.pop("vllm_xargs", None)
    if case.client == "ours":
        ours.pop("stream_options", None)  # usage, which is on for `ChatOoOSpec`
    assert ours == theirs
    assert (added is not None) is (case.tools > 0)
    if case.tools:
        assert ("ooospec_id" in added) is (sidecar is not None)
    if case.client == "ours":
        assert (report is not None) is (case.tools > 0)
    if case.wanted:
        assert target.reports[0]["hint"]["arrived"] is True
        assert target.reports[0]["hint"]["used"] is (case.hint != "wrong name")
