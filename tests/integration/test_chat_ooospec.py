"""ChatOoOSpec against a scripted target: reports, reasoning, every shape of a stream, and nothing else changed."""

import asyncio
import gc
from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest
from langchain_core.load import dumpd, dumps, loads
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec, accelerate
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models import _client_utils
from openai_ooospec import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from ooospec_agents.testing import Call, Reply, ScriptedTarget, StreamShape, oblige
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker

WEATHER = Call("get_weather", {"city": "Oslo", "days": 3})
TABLE = {"Which tool is called next": " 0", "value of city": " Oslo", "value of days": " 3"}

Ask = Callable[[Runnable[Any, AIMessage], str], AIMessage]


@tool
def get_weather(city: str, days: int) -> str:
    """The weather in a city."""
    return f"{city}: sun for {days} days"


def invoke(model: Runnable[Any, AIMessage], text: str) -> AIMessage:
    return model.invoke(text)


def ainvoke(model: Runnable[Any, AIMessage], text: str) -> AIMessage:
    return asyncio.run(model.ainvoke(text))


def stream(model: Runnable[Any, AIMessage], text: str) -> AIMessage:
    return summed(list(model.stream(text)))


def astream(model: Runnable[Any, AIMessage], text: str) -> AIMessage:
    async def collect() -> list[Any]:
        return [chunk async for chunk in model.astream(text)]

    return summed(asyncio.run(collect()))


def summed(chunks: list[Any]) -> AIMessage:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


@pytest.fixture(params=[invoke, ainvoke, stream, astream], ids=lambda ask: ask.__name__)
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.param


def chat(target: ScriptedTarget, **options: Any) -> ChatOoOSpec:
    return ChatOoOSpec(**{"model": "scripted", "base_url": target.base_url, "api_key": "key", **options})


def prepared(target: ScriptedTarget, **options: Any) -> Runnable[Any, AIMessage]:
    model = chat(target, **options)
    bound = model.bind_tools([get_weather])
    assert model.wait_until_known()
    return bound


def called(message: BaseMessage) -> list[tuple[str, Any]]:
    assert isinstance(message, AIMessage)
    return [(call["name"], call["args"]) for call in message.tool_calls]


def test_the_report_is_in_the_response_metadata(scripted_target: TargetMaker, ask: Ask) -> None:
    target = scripted_target(Reply(calls=(WEATHER,)))
    answer = ask(prepared(target), "Weather in Oslo?")
    assert answer.response_metadata["ooospec"] == target.reports[0]


def test_a_hint_of_the_clients_own_sidecar_is_used(
    scripted_target: TargetMaker, scripted_sidecar: SidecarMaker, ask: Ask
) -> None:
    target = scripted_target(Reply(calls=(WEATHER,), wait_for_hint_s=5))
    sidecar = scripted_sidecar(TABLE)
    answer = ask(prepared(target, sidecar=sidecar.url), "Weather in Oslo for 3 days?")
    assert answer.response_metadata["ooospec"]["hint"]["used"] is True
    assert called(answer) == [("get_weather", {"city": "Oslo", "days": 3})]


def test_the_hint_says_what_the_sidecar_said(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target = scripted_target(Reply(calls=(WEATHER,)))
    prepared(target, sidecar=scripted_sidecar(TABLE).url).invoke("Weather in Oslo for 3 days?")
    request_id = target.chats[0]["vllm_xargs"]["ooospec_id"]
    path = f"/v1/ooospec/hints/{request_id}"
    assert target.wait_for(lambda: bool(target.bodies(path)))
    call = target.bodies(path)[0]["calls"][0]
    assert call["name"] == "get_weather"
    assert {name: slot["value"] for name, slot in call["slots"].items()} == {"city": "Oslo", "days": 3}


def test_without_a_report_there_is_no_key(scripted_target: TargetMaker, ask: Ask) -> None:
    target = scripted_target(Reply(calls=(WEATHER,)), plugin=False)
    answer = ask(chat(target).bind_tools([get_weather]), "Weather?")
    assert "ooospec" not in answer.response_metadata
    assert called(answer) == [("get_weather", {"city": "Oslo", "days": 3})]


def test_reasoning_text_is_kept(scripted_target: TargetMaker, ask: Ask) -> None:
    target = scripted_target(Reply(content="Four.", reasoning="Two and two."))
    answer = ask(chat(target), "2+2?")
    assert answer.additional_kwargs["reasoning_content"] == "Two and two."
    assert [block["type"] for block in answer.content_blocks] == ["reasoning", "text"]


TWO = (Call("get_weather", {"city": "Bergen", "days": 1}, id="a"), Call("f", {"x": [1, 2]}, id="b"))
FACE = (Call("f", {"x": "😀 'q' \\ \n"}),)
EMPTY = (Call("f", {}),)
SHAPES: list[tuple[StreamShape, tuple[Call, ...]]] = [
    ("plain", TWO),
    ("burst", TWO),
    ("first_burst", TWO),
    ("whole_calls", TWO),
    ("interleaved", TWO),
    ("same_index", TWO),
    ("no_arguments", EMPTY),
    ("empty_arguments", EMPTY),
    ("content_and_call", TWO),
    ("null_content", TWO),
    ("split_surrogates", FACE),
    ("null_function", TWO),
]


@pytest.mark.parametrize(("shape", "calls"), SHAPES, ids=[shape for shape, _ in SHAPES])
@pytest.mark.parametrize("ask_stream", [stream, astream])
def test_every_shape_of_a_stream_gives_the_calls(
    scripted_target: TargetMaker, shape: StreamShape, calls: tuple[Call, ...], ask_stream: Ask
) -> None:
    target = scripted_target(Reply(content="So:", calls=calls, shape=shape))
    answer = ask_stream(prepared(target), "Go")
    assert called(answer) == [(call.name, call.arguments) for call in calls]
    assert answer.text == "So:"


def test_streams_carry_usage(scripted_target: TargetMaker) -> None:
    answer = stream(chat(scripted_target(Reply(content="12345678"))), "Hi")
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["output_tokens"] == 2


def test_a_stream_with_a_response_format_has_one_report(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(calls=(WEATHER,), reasoning="Hm."))
    model = chat(target)
    bound = model.bind_tools([get_weather], response_format=Weather)
    assert model.wait_until_known()
    answer = stream(bound, "Weather?")
    assert answer.response_metadata["ooospec"] == target.reports[0]
    assert answer.additional_kwargs["reasoning_content"] == "Hm."


class Weather(BaseModel):
    """What the weather is."""

    sky: str


def test_structured_output_is_a_forced_call(scripted_target: TargetMaker) -> None:
    target = scripted_target(oblige)
    assert chat(target).with_structured_output(Weather).invoke("It is 'grey'") == Weather(sky="grey")
    assert target.chats[0]["tool_choice"] == {"type": "function", "function": {"name": "Weather"}}


def test_the_users_extra_body_is_merged_into(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(calls=(WEATHER,)))
    mine = {"vllm_xargs": {"ooospec": "lexical"}, "top_k": 5}
    prepared(target, extra_body=mine).invoke("Weather?")
    assert target.chats[0]["vllm_xargs"] == {"ooospec_report": 1, "ooospec": "lexical"}
    assert target.chats[0]["top_k"] == 5
    assert mine == {"vllm_xargs": {"ooospec": "lexical"}, "top_k": 5}


def test_binding_tools_prepares_the_target_and_the_sidecar(
    scripted_target: TargetMaker, scripted_sidecar: SidecarMaker
) -> None:
    target, sidecar = scripted_target(), scripted_sidecar(TABLE)
    chat(target, sidecar=sidecar.url).bind_tools([get_weather])
    assert target.wait_for(lambda: bool(target.bodies("/v1/ooospec/prepare")))
    assert target.bodies("/v1/ooospec/prepare")[0]["tools"][0]["function"]["name"] == "get_weather"
    assert sidecar.wait_for(lambda: "get_weather" in "".join(sidecar.prompts))


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_key_and_address_come_from_the_environment(
    scripted_target: TargetMaker, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    target = scripted_target(Reply(content="hi"), api_key="secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv(variable, target.base_url)
    assert ChatOoOSpec(model="scripted").invoke("Hello").content == "hi"


def test_max_tokens_goes_by_either_name(scripted_target: TargetMaker) -> None:
    target = scripted_target()
    chat(target, max_tokens=7).invoke("Hi")
    chat(target, max_completion_tokens=8).invoke("Hi")
    assert [body["max_tokens"] for body in target.chats] == [7, 8]


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
def test_what_was_written_down_is_read_as_a_plain_model_of_the_same_target(
    scripted_target: TargetMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = scripted_target(Reply(calls=(WEATHER,)), api_key="topsy")
    monkeypatch.setenv("OPENAI_API_KEY", "topsy")
    model = chat(target, api_key="topsy", temperature=0.5, sidecar="http://127.0.0.1:9", sidecar_api_key="hidden")
    written = dumps(model)
    assert "topsy" not in written
    assert "sidecar" not in written
    # langchain-core 1.0 asks for no list, and revives what it knows.
    known: dict[str, Any] = {"allowed_objects": "all"} if "allowed_objects" in signature(loads).parameters else {}
    read = loads(written, secrets_from_env=True, **known)
    assert type(read) is ChatOpenAI
    assert accelerate(read).bind_tools([get_weather]).invoke("Weather?").tool_calls[0]["name"] == WEATHER.name
    assert target.chats[-1]["temperature"] == 0.5


def test_a_chain_is_written_down_as_with_the_stock_model(scripted_target: TargetMaker) -> None:
    target = scripted_target()
    ours, stock = chat(target), ChatOpenAI(model="scripted", base_url=target.base_url, api_key="key", stream_usage=True)
    prompt = ChatPromptTemplate.from_template("{question}")
    assert dumpd(prompt | ours)["kwargs"]["last"]["id"] == dumpd(prompt | stock)["kwargs"]["last"]["id"]


def test_nothing_is_kept_on_the_model(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(calls=(WEATHER,)))
    model = chat(target)
    before = dict(model.__dict__)
    bound = model.bind_tools([get_weather])
    model.wait_until_known()
    bound.invoke("Weather?")
    # LangChain itself keeps its own description of a model that was called.
    assert {key: value for key, value in model.__dict__.items() if key != "_serialized"} == before


def test_binding_twice_replaces(scripted_target: TargetMaker) -> None:
    target = scripted_target()
    model = chat(target)
    model.bind_tools([get_weather])
    model.bind_tools([Weather]).invoke("Hi")
    assert [entry["function"]["name"] for entry in target.chats[0]["tools"]] == ["Weather"]


def in_three_loops(model: Runnable[Any, AIMessage]) -> list[Any]:
    return [asyncio.run(model.ainvoke("Hi")).content for _ in range(3)]


def test_one_model_serves_several_event_loops(scripted_target: TargetMaker) -> None:
    assert in_three_loops(chat(scripted_target(Reply(content="hi")))) == ["hi", "hi", "hi"]


@pytest.mark.filterwarnings("ignore")
def test_without_connections_of_each_loop_the_second_fails(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(content="hi"))
    stock = ChatOpenAI(model="scripted", base_url=target.base_url, api_key="key", max_retries=0)
    with pytest.raises(Exception, match=r"Event loop is closed|Connection error"):
        in_three_loops(stock)
    # What the dead loops left open goes here, where its warnings are expected.
    del stock
    _client_utils._cached_async_httpx_client.cache_clear()
    gc.collect()


class TestAccelerate:
    def test_the_class_stays(self, scripted_target: TargetMaker) -> None:
        stock = ChatOpenAI(model="scripted", base_url=scripted_target().base_url, api_key="key")
        fast = accelerate(stock)
        assert type(fast) is ChatOpenAI
        assert getattr(fast, "profile", None) == getattr(stock, "profile", None)  # LangChain 1.0 has none
        assert isinstance(fast.root_client, OpenAI)
        assert isinstance(fast.root_async_client, AsyncOpenAI)
        assert not isinstance(stock.root_client, OpenAI)

    def test_its_requests_are_tagged_once_the_target_is_known(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(Reply(calls=(WEATHER,)))
        stock = ChatOpenAI(model="scripted", base_url=target.base_url, api_key="key")
        fast = accelerate(stock)
        fast.root_client.prepare([])
        assert fast.root_client.wait_until_known()
        for model in (stock, fast):
            assert called(model.bind_tools([get_weather]).invoke("Weather?")) == [
                ("get_weather", {"city": "Oslo", "days": 3})
            ]
        assert ["vllm_xargs" in body for body in target.chats] == [False, True]

    def test_settings_are_carried_over(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(Reply(content="hi"), api_key="secret")
        headers = {"X-Mine": "1"}
        stock = ChatOpenAI(model="scripted", base_url=target.base_url, api_key="secret", default_headers=headers)
        assert invoke(accelerate(stock), "Hi").content == "hi"
        assert ainvoke(accelerate(stock), "Hi").content == "hi"
        assert [request.headers["x-mine"] for request in target.requests] == ["1", "1"]

    def test_what_is_no_model_is_refused(self) -> None:
        stock = ChatOpenAI(model="scripted", base_url="http://127.0.0.1:9/v1", api_key="key")
        with pytest.raises(TypeError, match="pass the chat model itself, before `bind_tools`"):
            accelerate(stock.bind_tools([get_weather]))  # type: ignore[type-var]
