"""A call that `max_tokens` cut is never presented as whole, by whatever way and class it is asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec, OoOSpecMiddleware, accelerate
from langchain_ooospec.response_calls import ResponseCalls
from langchain_openai import ChatOpenAI
from openai.types.responses import ResponseCompletedEvent, ResponseIncompleteEvent, ResponseOutputItemAddedEvent
from openai_ooospec import OpenAI
from pydantic import BaseModel

from ooospec_agents.testing import Call, Reply, ScriptedTarget
from ooospec_agents.testing.fixtures import TargetMaker

FIRST = Call("f", {"x": 1}, id="a")
# The last ones look whole: some parsers close braces themselves, and LangChain reads "" as `{}`.
CUT = ['{"x":1,"y":"ab', '{"x":[1,2', "{", '{"x":"a\\', '{"x":{"a":"b"', '{"x": tr', '{"x":"a\\u00', '{"x":"]}']
LOOKS_WHOLE = ["", "{}", '{"x":"Hello Wor"}', '{"x":[{}]} ']

ran: list[str] = []


@tool
def g(x: str = "") -> str:
    """Does something."""
    ran.append(x)
    return x


def accelerated(**options: Any) -> ChatOpenAI:
    return accelerate(ChatOpenAI(**options))


def invoke(model: Any) -> Any:
    return model.invoke("Go")


def ainvoke(model: Any) -> Any:
    return asyncio.run(model.ainvoke("Go"))


def total(chunks: list[Any]) -> Any:
    first, *rest = chunks
    for chunk in rest:
        first += chunk
    return first


def stream(model: Any) -> Any:
    return total(list(model.stream("Go")))


def astream(model: Any) -> Any:
    async def read() -> list[Any]:
        return [chunk async for chunk in model.astream("Go")]

    return total(asyncio.run(read()))


def events(model: Any) -> Any:
    if not hasattr(model, "stream_events"):
        pytest.skip("this LangChain has no third protocol")
    found = model.stream_events("Go", version="v3")
    list(found)
    return found.output


def streaming(model: Any) -> Any:
    """Streamed underneath, as where a graph streams messages."""
    return model.model_copy(update={"streaming": True}).invoke("Go")


WAYS = pytest.mark.parametrize(
    "ask", [invoke, ainvoke, stream, astream, events, streaming], ids=lambda way: way.__name__
)
KINDS = pytest.mark.parametrize("kind", [ChatOoOSpec, accelerated], ids=["ours", "accelerated"])
APIS = pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])


def of(kind: Any, target: ScriptedTarget, **options: Any) -> Any:
    return kind(model="scripted", base_url=target.base_url, api_key="key", **options)


def replies(finish_reason: str, texts: list[str]) -> list[Reply]:
    return [Reply(calls=(FIRST, Call("g", text, id="b")), finish_reason=finish_reason) for text in texts]


def called(message: Any) -> list[tuple[str, Any]]:
    return [(call["name"], call["args"]) for call in message.tool_calls]


@WAYS
@KINDS
@APIS
def test_a_cut_call_is_invalid(scripted_target: TargetMaker, ask: Any, kind: Any, responses: bool) -> None:
    texts = [*CUT, *LOOKS_WHOLE]
    model = of(kind, scripted_target(replies("length", texts)), use_responses_api=responses)
    for text in texts:
        message = ask(model)
        assert called(message) == [("f", {"x": 1})], text
        (invalid,) = message.invalid_tool_calls
        assert (invalid["name"], invalid["id"]) == ("g", "b")
        assert invalid["args"].startswith(text)


@WAYS
@KINDS
@APIS
def test_the_same_call_that_was_not_cut_is_whole(
    scripted_target: TargetMaker, ask: Any, kind: Any, responses: bool
) -> None:
    texts = ["{}", '{"x":"Hello Wor"}', '{"x":[{}]} ']
    model = of(kind, scripted_target(replies("tool_calls", texts)), use_responses_api=responses)
    for arguments in ({}, {"x": "Hello Wor"}, {"x": [{}]}):
        message = ask(model)
        assert called(message) == [("f", {"x": 1}), ("g", arguments)]
        assert message.invalid_tool_calls == []


@APIS
def test_stock_langchain_takes_it_for_whole(scripted_target: TargetMaker, responses: bool) -> None:
    target = scripted_target(replies("length", CUT[:1]))
    message = stream(of(ChatOpenAI, target, use_responses_api=responses))
    assert called(message) == [("f", {"x": 1}), ("g", {"x": 1, "y": "ab"})]


@pytest.mark.parametrize("shape", ["burst", "first_burst", "whole_calls", "interleaved", "same_index", "no_index"])
@pytest.mark.parametrize("text", [CUT[0], LOOKS_WHOLE[2]])
def test_in_other_shapes_of_a_stream(scripted_target: TargetMaker, shape: Any, text: str) -> None:
    reply = Reply(calls=(FIRST, Call("g", text, id="b")), finish_reason="length", shape=shape)
    message = stream(of(accelerated, scripted_target(reply)))
    assert called(message) == [("f", {"x": 1})]
    assert [call["name"] for call in message.invalid_tool_calls] == ["g"]


@pytest.mark.parametrize("mode", [None, "messages"])
def test_an_agent_does_not_run_it(scripted_target: TargetMaker, mode: Any) -> None:
    target = scripted_target(
        [Reply(calls=(Call("g", '{"x":"Hello Wor'),), finish_reason="length"), Reply(content="hi")]
    )
    stock = of(ChatOpenAI, target)
    agent = create_agent(stock, [g], middleware=[OoOSpecMiddleware()])
    ran.clear()
    if mode is None:
        agent.invoke({"messages": [HumanMessage("Go")]})
    else:
        parts = agent.stream({"messages": [HumanMessage("Go")]}, stream_mode=mode)
        seen = [part for part, _ in parts if isinstance(part, AIMessageChunk)]
        (invalid,) = total([chunk for chunk in seen if chunk.id == seen[0].id]).invalid_tool_calls
        assert invalid["name"] == "g"
    assert ran == []


def test_a_stock_agent_that_streams_runs_it(scripted_target: TargetMaker) -> None:
    target = scripted_target(
        [Reply(calls=(Call("g", '{"x":"Hello Wor'),), finish_reason="length"), Reply(content="hi")]
    )
    ran.clear()
    list(create_agent(of(ChatOpenAI, target), [g]).stream({"messages": [HumanMessage("Go")]}, stream_mode="messages"))
    assert ran == ["Hello Wor"]


class Point(BaseModel):
    """A point."""

    name: str


@KINDS
@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
def test_no_object_is_made_of_it(scripted_target: TargetMaker, kind: Any, method: Any) -> None:
    text = '{"name":"Glitt'
    cut = {"function_calling": Reply(calls=(Call("Point", f'{text}"}}'),)), "json_schema": Reply(content=text)}[method]
    target = scripted_target(Reply(calls=cut.calls, content=cut.content, finish_reason="length"))
    structured = of(kind, target).with_structured_output(Point, method=method, include_raw=True)
    try:
        found = structured.invoke("Go")
    except openai.LengthFinishReasonError:
        assert method == "json_schema"
    else:
        assert found["parsed"] is None


def test_the_sdk_raises(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(calls=(Call("g", CUT[0]),), finish_reason="length"))
    with (
        OpenAI(base_url=target.base_url, api_key="key") as client,
        pytest.raises(openai.LengthFinishReasonError),
        client.chat.completions.stream(model="m", messages=[]) as found,
    ):
        found.get_final_completion()


@pytest.mark.parametrize(
    ("kind", "status", "reason", "marked"),
    [
        (ResponseCompletedEvent, "incomplete", "max_output_tokens", True),
        (ResponseIncompleteEvent, "incomplete", "max_output_tokens", True),
        (ResponseIncompleteEvent, "incomplete", "content_filter", False),
        (ResponseCompletedEvent, "completed", None, False),
    ],
)
def test_last_events_of_the_responses_api(kind: Any, status: str, reason: str | None, marked: bool) -> None:
    item = {"type": "function_call", "id": "i", "call_id": "c", "name": "g", "arguments": ""}
    details = {"reason": reason} if reason else None
    calls = ResponseCalls()
    added = {"type": "response.output_item.added", "output_index": 0, "sequence_number": 0, "item": item}
    list(calls.read(ResponseOutputItemAddedEvent.model_validate(added)))
    last = kind.construct(
        sequence_number=1, response={"status": status, "incomplete_details": details, "output": [item]}
    )
    found = list(calls.read(last))
    assert len(found) == (2 if marked else 1)
    assert found[-1] is last
    assert (last.response.output[0].arguments != "") is marked
