"""Everything people do with `ChatOpenAI` works with `ChatOoOSpec`, and asks the target for the same."""

from __future__ import annotations

import asyncio
import copy
import itertools
import pickle
from typing import Any, TypedDict

import openai
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import PydanticToolsParser
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import ConfigurableField
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec, accelerate
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

from ooospec_agents.testing import Call, Reply, ScriptedTarget, oblige
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker


class Point(BaseModel):
    """A point of the map."""

    name: str
    height: int = Field(description="In metres")


class PointDict(TypedDict):
    """A point of the map."""

    name: str
    height: int


@tool
def look(name: str) -> str:
    """Look at a point."""
    return name


@tool
def auto(name: str) -> str:
    """A tool whose name is a keyword."""
    return name


SCHEMA = {
    "title": "Point",
    "description": "A point of the map.",
    "type": "object",
    "properties": {"name": {"type": "string"}, "height": {"type": "integer"}},
    "required": ["name", "height"],
}
TEXT = "The summit 'Glittertind' is 2464 m, keys 'name' and 'height'"


def chat(target: ScriptedTarget, **options: Any) -> ChatOoOSpec:
    return ChatOoOSpec(model="scripted", base_url=target.base_url, api_key="key", **options)


def stock(target: ScriptedTarget, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="scripted", base_url=target.base_url, api_key="key", **options)


def names(bodies: list[dict[str, Any]]) -> list[list[str]]:
    return [[entry["function"]["name"] for entry in body["tools"]] for body in bodies]


CHOICES: list[Any] = [
    None,
    False,
    True,
    "any",
    "required",
    "auto",
    "none",
    "look",
    {"type": "function", "function": {"name": "look"}},
]


@pytest.mark.parametrize("choice", CHOICES, ids=repr)
def test_a_bound_request_is_the_stock_classs(scripted_target: TargetMaker, choice: Any) -> None:
    target = scripted_target(Reply(content="hi"), plugin=False)
    for strict, parallel in itertools.product((None, True, False), (None, True, False)):
        options = {"tool_choice": choice, "strict": strict, "parallel_tool_calls": parallel}
        for model in (stock(target), chat(target)):
            model.bind_tools([look, Point], **options).invoke("Go")
        theirs, ours = target.chats[-2:]
        assert ours == theirs
        assert (ours.get("parallel_tool_calls"), ours["tools"][0]["function"].get("strict")) == (parallel, strict)


def test_a_tool_named_like_a_keyword_is_meant(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(content="hi"))
    chat(target).bind_tools([look, auto], tool_choice="auto").invoke("Go")
    assert target.chats[0]["tool_choice"] == {"type": "function", "function": {"name": "auto"}}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # LangChain's own, in streams of parsed objects
@pytest.mark.parametrize("include_raw", [False, True])
@pytest.mark.parametrize("method", ["function_calling", "json_schema", "json_mode"])
@pytest.mark.parametrize("schema", [Point, PointDict, SCHEMA], ids=["pydantic", "typed dict", "json schema"])
def test_structured_output(scripted_target: TargetMaker, schema: Any, method: Any, include_raw: bool) -> None:
    right = {"name": "Glittertind", "height": 2464}
    calls = (Call("Point" if schema is not PointDict else "PointDict", right),)
    reply = (
        Reply(calls=calls) if method == "function_calling" else Reply(content='{"name": "Glittertind", "height": 2464}')
    )
    target = scripted_target(reply)
    strict = {} if method == "json_mode" else {"strict": True}
    structured = chat(target).with_structured_output(schema, method=method, include_raw=include_raw, **strict)
    streamed = list(structured.stream(TEXT))
    merged = {key: value for found in streamed for key, value in found.items()} if include_raw else streamed[-1]
    for found in (structured.invoke(TEXT), asyncio.run(structured.ainvoke(TEXT)), merged):
        parsed = found["parsed"] if include_raw else found
        assert parsed == (Point(**right) if schema is Point else right)
    assert ("tools" in target.chats[0]) is (method == "function_calling")


def test_recursive_and_shared_definitions_reach_the_target(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(content="hi"), plugin=False)
    for model in (stock(target), chat(target)):
        model.bind_tools([Tree]).invoke("Go")
    assert target.chats[0] == target.chats[1]


class Tree(BaseModel):
    """A tree of points."""

    root: Point
    branches: list[Tree] = []


def test_binding_again_replaces_as_langchain_does(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(content="hi"))
    bound = chat(target).bind_tools([look])
    bound.bind_tools([Point]).invoke("Go")
    bound.bind(stop=["x"]).invoke("Go")
    assert names(target.chats) == [["Point"], ["look"]]
    assert target.chats[1]["stop"] == ["x"]


def test_with_config_and_callbacks(scripted_target: TargetMaker) -> None:
    class Seen(BaseCallbackHandler):
        def __init__(self) -> None:
            self.tags: list[Any] = []
            self.ends: list[Any] = []

        def on_chat_model_start(self, *_: Any, **event: Any) -> None:
            self.tags.append(event["tags"])

        def on_llm_end(self, response: Any, **_: Any) -> None:
            self.ends.append(response.generations[0][0].message)

    seen, usage = Seen(), UsageMetadataCallbackHandler()
    target = scripted_target(Reply(calls=(Call("look", {"name": "a"}),)))
    configured = chat(target).bind_tools([look]).with_config(tags=["mine"], callbacks=[seen, usage])
    configured.invoke("Go")
    list(configured.stream("Go"))
    assert seen.tags == [["mine"], ["mine"]]
    assert [end.tool_calls[0]["args"] for end in seen.ends] == [{"name": "a"}] * 2
    assert usage.usage_metadata["scripted"]["output_tokens"] == 2 * seen.ends[0].usage_metadata["output_tokens"]


def test_with_retry(scripted_target: TargetMaker) -> None:
    target = scripted_target([Reply(status=500), Reply(content="hi")])
    model = chat(target, max_retries=0)
    with pytest.raises(openai.InternalServerError):
        model.invoke("Go")
    target = scripted_target([Reply(status=500), Reply(content="hi")])
    retrying = chat(target, max_retries=0).bind_tools([look]).with_retry(wait_exponential_jitter=False)
    assert retrying.invoke("Go").content == "hi"
    assert names(target.chats) == [["look"], ["look"]]


def test_with_fallbacks(scripted_target: TargetMaker) -> None:
    broken, whole = scripted_target(Reply(status=500)), scripted_target(oblige)
    model = chat(broken, max_retries=0).bind_tools([look])
    found = model.with_fallbacks([chat(whole).bind_tools([look])]).invoke("Look at 'a'")
    assert found.tool_calls[0]["args"] == {"name": "a"}
    assert (len(broken.chats), len(whole.chats)) == (1, 1)


def test_configurable_fields_and_alternatives(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(content="hi"))
    model = chat(target).configurable_fields(max_tokens=ConfigurableField(id="most"))
    chosen = model.configurable_alternatives(ConfigurableField(id="which"), other=chat(target, temperature=0.5))
    chosen.invoke("Go", {"configurable": {"most": 7}})
    chosen.invoke("Go", {"configurable": {"which": "other"}})
    chat(target).bind_tools([look]).configurable_fields(kwargs=ConfigurableField(id="bound")).invoke(
        "Go", {"configurable": {"bound": {"max_tokens": 9}}}
    )
    assert [body.get("max_tokens") for body in target.chats] == [7, None, 9]
    assert target.chats[1]["temperature"] == 0.5


def test_the_cache_hits_and_tells_tools_apart(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target = scripted_target(oblige)
    model = chat(target, cache=InMemoryCache(), sidecar=scripted_sidecar().url)
    bound = model.bind_tools([look])
    assert model.wait_until_known()
    answers = [bound.invoke("Look at 'a'") for _ in range(3)]
    assert len(target.chats) == 1
    assert [answer.tool_calls for answer in answers] == [answers[0].tool_calls] * 3
    model.bind_tools([Point]).invoke("Look at 'a'")
    assert len(target.chats) == 2


def test_the_rate_limiter_is_asked_each_time(scripted_target: TargetMaker) -> None:
    class Counting(BaseRateLimiter):
        asked = 0

        def acquire(self, *, blocking: bool = True) -> bool:
            self.asked += 1
            return True

        async def aacquire(self, *, blocking: bool = True) -> bool:
            return self.acquire()

    limiter = Counting()
    model = chat(scripted_target(Reply(content="hi")), rate_limiter=limiter)
    model.invoke("Go")
    list(model.stream("Go"))
    asyncio.run(model.ainvoke("Go"))
    assert limiter.asked == 3


def test_batches_keep_their_order(scripted_target: TargetMaker) -> None:
    model = chat(scripted_target(oblige)).bind_tools([look]) | PydanticToolsParser(tools=[look.args_schema])
    texts = [f"Look at '{letter}'" for letter in "abcdef"]
    assert [found[0].name for found in model.batch(texts)] == list("abcdef")


def test_several_choices(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(content="hi"))
    found = chat(target, n=2).generate([[HumanMessage("Go")]])
    assert [one.text for one in found.generations[0]] == ["hi", "hi"]


def test_streaming_on_invoke_keeps_report_usage_and_reasoning(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(calls=(Call("look", {"name": "a"}),), reasoning="Hm."))
    model = chat(target, streaming=True)
    bound = model.bind_tools([look])
    assert model.wait_until_known()
    found = bound.invoke("Go")
    assert type(found) is AIMessage
    assert target.chats[0]["stream"] is True
    assert found.response_metadata["ooospec"] == target.reports[0]
    assert found.additional_kwargs["reasoning_content"] == "Hm."
    assert found.usage_metadata is not None


@pytest.mark.parametrize("version", ["v0", "v1"])
def test_versions_of_content(scripted_target: TargetMaker, version: str) -> None:
    target = scripted_target(Reply(content="So:", calls=(Call("look", {"name": "a"}),), reasoning="Hm."))
    model = chat(target, output_version=version)
    for found in (model.invoke("Go"), next(iter(model.stream("Go")))):
        assert isinstance(found.content, list if version == "v1" else str)
    whole = model.invoke("Go")
    assert [block["type"] for block in whole.content_blocks] == ["reasoning", "text", "tool_call"]


def test_sampling_options_reach_the_target_as_they_are(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(content="hi"), plugin=False)
    options = {"seed": 3, "logprobs": True, "top_logprobs": 2, "stop": ["}"], "temperature": 0.3, "top_p": 0.9, "n": 2}
    for model in (stock(target, **options), chat(target, **options)):
        model.bind_tools([look]).invoke("Go")
    theirs, ours = target.chats
    assert ours == theirs
    assert {name: ours[name] for name in options} == options


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_refused_attempt_is_tried_again(scripted_target: TargetMaker, status: int) -> None:
    target = scripted_target([Reply(status=status), Reply(content="hi")])
    assert chat(target, max_retries=1).bind_tools([look]).invoke("Go").content == "hi"
    assert len(target.chats) == 2


class TestCopies:
    def test_shallow_ones_work(self, scripted_target: TargetMaker) -> None:
        model = chat(scripted_target(Reply(content="hi")))
        for shallow in (copy.copy(model), model.model_copy(update={"temperature": 0.5})):
            assert shallow.invoke("Go").content == "hi"
            assert asyncio.run(shallow.ainvoke("Go")).content == "hi"

    @pytest.mark.parametrize("fail", [copy.deepcopy, pickle.dumps, lambda model: model.model_copy(deep=True)])
    def test_deep_ones_and_pickles_say_what_to_do(self, scripted_target: TargetMaker, fail: Any) -> None:
        with pytest.raises(TypeError, match=r"'ChatOoOSpec' holds open connections.*take a shallow copy"):
            fail(chat(scripted_target()))

    @pytest.mark.parametrize("fail", [copy.deepcopy, pickle.dumps])
    def test_so_do_those_of_an_accelerated_stock_model(self, scripted_target: TargetMaker, fail: Any) -> None:
        with pytest.raises(TypeError, match="OpenAI' holds open connections"):
            fail(accelerate(stock(scripted_target())).root_client)
