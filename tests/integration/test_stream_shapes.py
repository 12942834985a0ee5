"""Every shape of a stream, read by the accumulators of LangChain, of the OpenAI SDK, and by our models.

What stock LangChain and the SDK make of a shape is written down, right or wrong: where they fail, `ChatOoOSpec` and
accelerated models must not, and a target must not send that shape to others.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_ooospec import ChatOoOSpec, accelerate
from langchain_openai import ChatOpenAI
from openai_ooospec import OpenAI

from ooospec_agents.testing import STREAM_SHAPES, Call, Reply, ScriptedTarget, StreamShape
from ooospec_agents.testing.fixtures import TargetMaker

Read = list[tuple[str, Any]] | type[Exception]

TWO = (Call("f", {"x": 1}, id="a"), Call("g", {"y": [2]}, id="b"))
ONE = TWO[:1]
EMPTY = (Call("f", {}, id="a"),)
FACE = (Call("f", {"x": "a😀 'q' \\ \n"}, id="a"),)

# shape, calls sent, what stock LangChain reads, what the SDK's `.stream()` ends with; None: the calls as sent
TABLE: list[tuple[StreamShape, tuple[Call, ...], Any, Any]] = [
    ("plain", TWO, None, None),
    ("burst", TWO, None, None),
    ("first_burst", ONE, [], None),
    ("whole_calls", TWO, None, None),
    ("interleaved", TWO, None, None),
    ("same_index", TWO, None, [("fg", '{"x": 1}{"y": [2]}')]),
    ("no_arguments", EMPTY, None, [("f", None)]),
    ("empty_arguments", EMPTY, None, [("f", "")]),
    ("repeated_name", ONE, [("ff", {"x": 1})], [("ff", {"x": 1})]),
    ("content_and_call", TWO, None, None),
    ("null_content", TWO, None, None),
    ("split_surrogates", FACE, None, None),
    ("null_function", TWO, AttributeError, AssertionError),
    ("no_index", TWO, None, TypeError),
]
LATER = pytest.mark.skipif(not hasattr(BaseChatModel, "stream_events"), reason="the table is of later releases")
ROWS = pytest.mark.parametrize(("shape", "calls", "langchain", "sdk"), TABLE, ids=[row[0] for row in TABLE])


def whole(model: BaseChatModel) -> AIMessage:
    first, *rest = list(model.stream("Go"))
    for chunk in rest:
        first += chunk
    return first


def awhole(model: BaseChatModel) -> AIMessage:
    async def read() -> Any:
        total: Any = None
        async for chunk in model.astream("Go"):
            total = chunk if total is None else total + chunk
        return total

    return asyncio.run(read())


def events(model: BaseChatModel) -> AIMessage:
    """The third streaming protocol."""
    if not hasattr(model, "stream_events"):
        pytest.skip("this LangChain has no third protocol")
    stream = model.stream_events("Go", version="v3")
    list(stream)
    return stream.output


def of(kind: Any, target: ScriptedTarget) -> Any:
    return kind(model="scripted", base_url=target.base_url, api_key="key")


def accelerated(**options: Any) -> ChatOpenAI:
    return accelerate(ChatOpenAI(**options))


def called(message: AIMessage) -> list[tuple[str, Any]]:
    return [(call["name"], call["args"]) for call in message.tool_calls]


def sent(calls: tuple[Call, ...]) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls]


def test_the_table_has_every_shape() -> None:
    assert {row[0] for row in TABLE} == set(STREAM_SHAPES)


@ROWS
@pytest.mark.parametrize("read", [whole, awhole, events])
@pytest.mark.parametrize("kind", [ChatOoOSpec, accelerated], ids=["ours", "accelerated"])
def test_ours_reads_the_calls(
    scripted_target: TargetMaker, kind: Any, read: Any, shape: Any, calls: tuple[Call, ...], langchain: Any, sdk: Any
) -> None:
    message = read(of(kind, scripted_target(Reply(calls=calls, shape=shape))))
    assert called(message) == sent(calls)
    assert message.invalid_tool_calls == []


@ROWS
def test_what_callbacks_see_is_readable_too(
    scripted_target: TargetMaker, shape: StreamShape, calls: tuple[Call, ...], langchain: Any, sdk: Any
) -> None:
    """Token streams of LangGraph are made of it."""

    class Seen(BaseCallbackHandler):
        total: Any = None

        def on_llm_new_token(self, token: str, *, chunk: Any = None, **_: Any) -> None:
            self.total = chunk.message if self.total is None else self.total + chunk.message

    seen = Seen()
    model = of(ChatOoOSpec, scripted_target(Reply(calls=calls, shape=shape)))
    list(model.with_config(callbacks=[seen]).stream("Go"))
    assert called(seen.total) == sent(calls)


@LATER
@ROWS
def test_stock_langchain(
    scripted_target: TargetMaker, shape: StreamShape, calls: tuple[Call, ...], langchain: Any, sdk: Any
) -> None:
    model = of(ChatOpenAI, scripted_target(Reply(calls=calls, shape=shape)))
    if isinstance(langchain, type):
        with pytest.raises(langchain):
            whole(model)
        return
    read = [call for call in called(whole(model)) if call[0]]
    assert read == (sent(calls) if langchain is None else langchain)


@LATER
@ROWS
@pytest.mark.parametrize("kind", [openai.OpenAI, OpenAI])
def test_the_sdk(
    scripted_target: TargetMaker, kind: Any, shape: StreamShape, calls: tuple[Call, ...], langchain: Any, sdk: Any
) -> None:
    """Our client is the SDK's: what it sends on is what came."""
    target = scripted_target(Reply(calls=calls, shape=shape))

    def read() -> list[tuple[str, Any]]:
        with (
            kind(base_url=target.base_url, api_key="key") as client,
            client.chat.completions.stream(model="m", messages=[]) as stream,
        ):
            message = stream.get_final_completion().choices[0].message
        return [(call.function.name, _json(call.function.arguments)) for call in message.tool_calls or []]

    if isinstance(sdk, type):
        with pytest.raises(sdk):
            read()
    else:
        assert read() == (sent(calls) if sdk is None else sdk)


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except ValueError:
        return text
