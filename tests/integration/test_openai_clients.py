"""The OpenAI clients against a scripted target: what is tagged, and what is left alone."""

import asyncio
import copy
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from langchain_ooospec import accelerate
from langchain_openai import ChatOpenAI
from openai_ooospec import AsyncOpenAI, OpenAI, accelerate_client
from openai_ooospec.sdk import obstacle
from pydantic import BaseModel

from ooospec_agents.testing import Call, Reply, ScriptedTarget
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}},
        },
    }
]
STRICT: list[Any] = [openai.pydantic_function_tool(type("F", (BaseModel,), {"__annotations__": {"x": int}}))]
ASK: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "Go"}], "tools": TOOLS}
REPLY = Reply(calls=(Call("f", {"x": 1}),))


def known_client(target: ScriptedTarget, **options: Any) -> OpenAI:
    client = OpenAI(base_url=target.base_url, api_key="key", **options)
    client.prepare([])
    assert client.wait_until_known()
    return client


def tagged(target: ScriptedTarget) -> list[bool]:
    return ["vllm_xargs" in body for body in [*target.chats, *target.bodies("/v1/responses")]]


def call_create(client: OpenAI) -> None:
    client.chat.completions.create(**ASK)


def call_stream(client: OpenAI) -> None:
    with client.chat.completions.create(**ASK, stream=True) as chunks:
        list(chunks)


def call_raw(client: OpenAI) -> None:
    client.chat.completions.with_raw_response.create(**ASK).parse()


def call_streaming_response(client: OpenAI) -> None:
    with client.chat.completions.with_streaming_response.create(**ASK) as response:
        response.parse()


def call_parse(client: OpenAI) -> None:
    client.chat.completions.parse(**{**ASK, "tools": STRICT})


def call_stream_helper(client: OpenAI) -> None:
    with client.chat.completions.stream(**ASK) as events:
        list(events)


def call_with_options(client: OpenAI) -> None:
    client.with_options(timeout=30).chat.completions.create(**ASK)


def call_copy(client: OpenAI) -> None:
    client.copy(max_retries=1).chat.completions.create(**ASK)


def call_post(client: OpenAI) -> None:
    client.post("/chat/completions", cast_to=object, body=ASK)


FLAT: list[Any] = [{"type": "function", **TOOLS[0]["function"]}]
ITEMS: dict[str, Any] = {"model": "scripted", "input": "Go", "tools": FLAT}


def call_responses(client: OpenAI) -> None:
    answer = client.responses.create(**ITEMS)
    assert [(item.name, item.arguments) for item in answer.output] == [("f", '{"x": 1}')]


def call_responses_raw(client: OpenAI) -> None:
    assert client.responses.with_raw_response.create(**ITEMS).parse().output[0].name == "f"


def call_responses_stream(client: OpenAI) -> None:
    with client.responses.create(**ITEMS, stream=True) as events:
        kinds = [event.type for event in events]
    assert "response.function_call_arguments.delta" in kinds
    assert kinds[-1] == "response.completed"


def call_responses_stream_helper(client: OpenAI) -> None:
    with client.responses.stream(**ITEMS) as events:
        list(events)
        assert events.get_final_response().output[0].arguments == '{"x": 1}'


def call_responses_parse(client: OpenAI) -> None:
    assert client.responses.parse(**ITEMS).output[0].arguments == '{"x": 1}'


def call_raw_stream(client: OpenAI) -> None:
    with client.chat.completions.with_raw_response.create(**ASK, stream=True).parse() as chunks:
        list(chunks)


def call_generator_of_tools(client: OpenAI) -> None:
    client.chat.completions.create(**{**ASK, "tools": (tool for tool in TOOLS)})


WAYS = [
    call_responses,
    call_responses_raw,
    call_responses_stream,
    call_responses_stream_helper,
    call_responses_parse,
    call_raw_stream,
    call_generator_of_tools,
    call_create,
    call_stream,
    call_raw,
    call_streaming_response,
    call_stream_helper,
    call_with_options,
    call_copy,
    call_post,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.removeprefix("call_"))
def test_every_way_to_ask_is_tagged(scripted_target: TargetMaker, way: Any) -> None:
    target = scripted_target(REPLY)
    with known_client(target) as client:
        way(client)
    assert tagged(target) == [True]


def test_parse_is_tagged(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(calls=(Call("F", {"x": 1}),)))
    with known_client(target) as client:
        call_parse(client)
    assert tagged(target) == [True]


async def test_the_async_client_is_tagged_and_reads_the_report(scripted_target: TargetMaker) -> None:
    target = scripted_target(REPLY)
    async with AsyncOpenAI(base_url=target.base_url, api_key="key") as client:
        client.prepare([])
        assert await asyncio.to_thread(client.wait_until_known)
        answer = await client.chat.completions.create(**ASK)
        chunks = [chunk async for chunk in await client.chat.completions.create(**ASK, stream=True)]
        await client.with_options(timeout=30).chat.completions.create(**ASK)
    assert answer.model_extra == {"ooospec": target.reports[0]}
    assert chunks[-1].model_extra == {"ooospec": target.reports[1]}
    assert tagged(target) == [True, True, True]


def test_an_async_client_serves_several_loops(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(content="hi"))
    client = AsyncOpenAI(base_url=target.base_url, api_key="key", max_retries=0)
    copied = client.with_options(timeout=30)
    for _ in range(2):
        for one in (client, copied):
            answer = asyncio.run(one.chat.completions.create(model="m", messages=[]))
            assert answer.choices[0].message.content == "hi"


def test_the_users_extra_body_is_merged_into(scripted_target: TargetMaker) -> None:
    target = scripted_target(REPLY)
    mine = {"top_k": 3, "vllm_xargs": {"ooospec_scope": "team"}}
    with known_client(target) as client:
        client.chat.completions.create(**ASK, extra_body=mine)
    assert target.chats[0]["top_k"] == 3
    assert target.chats[0]["vllm_xargs"] == {"ooospec_scope": "team", "ooospec_report": 1}
    assert mine == {"top_k": 3, "vllm_xargs": {"ooospec_scope": "team"}}


def test_tools_in_the_extra_body_count(scripted_target: TargetMaker) -> None:
    target = scripted_target(REPLY)
    with known_client(target) as client:
        client.chat.completions.create(model="m", messages=[], extra_body={"tools": TOOLS})
    assert tagged(target) == [True]


def test_a_request_without_tools_is_left_alone(scripted_target: TargetMaker) -> None:
    target = scripted_target(Reply(content="hi"))
    with known_client(target) as client:
        client.chat.completions.create(model="m", messages=[])
    assert tagged(target) == [False]


def test_a_retry_has_an_id_of_its_own(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target = scripted_target([Reply(status=500), REPLY])
    with known_client(target, sidecar=scripted_sidecar().url) as client:
        client.chat.completions.create(**ASK)
    first, second = (body["vllm_xargs"]["ooospec_id"] for body in target.chats)
    assert first != second


def test_the_users_own_id_gets_the_hint(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target = scripted_target(REPLY)
    sidecar = scripted_sidecar({"value of x": " 1", "Which tool": " 0"})
    with known_client(target, sidecar=sidecar.url) as client:
        client.chat.completions.create(**ASK, extra_body={"vllm_xargs": {"ooospec_id": "mine"}})
    assert target.wait_for(lambda: bool(target.bodies("/v1/ooospec/hints/mine")))


@pytest.mark.parametrize("way", [call_with_options, call_copy])
def test_copies_keep_the_sidecar(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker, way: Any) -> None:
    target = scripted_target(REPLY)
    with known_client(target, sidecar=scripted_sidecar().url) as client:
        way(client)
    assert "ooospec_id" in target.chats[0]["vllm_xargs"]


def test_no_hint_is_asked_for_where_none_would_be_used(
    scripted_target: TargetMaker, scripted_sidecar: SidecarMaker
) -> None:
    target = scripted_target(REPLY)
    with known_client(target, sidecar=scripted_sidecar().url) as client:
        client.chat.completions.create(**ASK, extra_body={"vllm_xargs": {"ooospec": "off"}})
        client.chat.completions.create(**ASK, tool_choice="none")
        client.chat.completions.create(**ASK)
    assert ["ooospec_id" in body["vllm_xargs"] for body in target.chats] == [False, False, True]


def test_the_key_is_shown_to_our_routes(scripted_target: TargetMaker) -> None:
    target = scripted_target(REPLY, api_key="secret")
    with OpenAI(base_url=target.base_url, api_key="secret") as client:
        client.prepare(TOOLS)
        assert client.wait_until_known()
        client.chat.completions.create(**ASK)
    assert tagged(target) == [True]


def test_a_responses_request_gets_hint_and_report(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target = scripted_target(Reply(calls=(Call("f", {"x": 7}),), wait_for_hint_s=5))
    sidecar = scripted_sidecar({"value of x": " 7", "Which tool": " 0"})
    with known_client(target, sidecar=sidecar.url) as client:
        answer = client.responses.create(**{**ITEMS, "input": [{"role": "user", "content": "x is seven"}]})
    assert answer.model_extra is not None
    assert answer.model_extra["ooospec"]["hint"]["used"] is True
    assert any("x is seven" in prompt for prompt in sidecar.prompts)


def test_the_users_headers_stay(scripted_target: TargetMaker) -> None:
    target = scripted_target(REPLY)
    with known_client(target, default_headers={"X-Mine": "1"}) as client:
        client.chat.completions.create(**ASK, extra_headers={"X-Also": "2"})
    headers = target.requests[-1].headers
    assert (headers["x-mine"], headers["x-also"]) == ("1", "2")


@pytest.mark.parametrize("fail", [copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("kind", [OpenAI, AsyncOpenAI])
def test_deep_copies_and_pickles_say_what_to_do(kind: Any, fail: Any) -> None:
    with pytest.raises(TypeError, match=r"holds open connections.*make another one with the same settings"):
        fail(kind(base_url="http://127.0.0.1:9/v1", api_key="key"))


def test_a_shallow_copy_keeps_the_sidecar(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target = scripted_target(REPLY)
    with known_client(target, sidecar=scripted_sidecar().url) as client:
        copy.copy(client).chat.completions.create(**ASK)
    assert "ooospec_id" in target.chats[0]["vllm_xargs"]


def test_threads_share_one_client(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target = scripted_target(REPLY)
    with known_client(target, sidecar=scripted_sidecar().url) as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.chat.completions.create(**ASK), range(32)))
    assert {answer.choices[0].message.tool_calls[0].function.name for answer in answers} == {"f"}
    ids = [body["vllm_xargs"]["ooospec_id"] for body in target.chats]
    assert len(set(ids)) == 32


def test_loops_in_threads_share_one_client(scripted_target: TargetMaker) -> None:
    target = scripted_target(REPLY)
    client = AsyncOpenAI(base_url=target.base_url, api_key="key", max_retries=0)

    async def several() -> list[str]:
        answers = await asyncio.gather(*(client.chat.completions.create(**ASK) for _ in range(4)))
        return [answer.choices[0].message.tool_calls[0].function.name for answer in answers]

    with ThreadPoolExecutor(4) as pool:
        names = list(pool.map(lambda _: asyncio.run(several()), range(8)))
    assert names == [["f"] * 4] * 8


async def test_a_cancelled_stream_leaves_the_client_usable(scripted_target: TargetMaker) -> None:
    target = scripted_target([Reply(calls=(Call("f", {"x": 1}),), chunk_delay_s=0.2), REPLY])
    async with AsyncOpenAI(base_url=target.base_url, api_key="key") as client:

        async def read() -> None:
            async with await client.chat.completions.create(**ASK, stream=True) as chunks:
                async for _ in chunks:
                    first.set()

        first = asyncio.Event()
        reading = asyncio.create_task(read())
        await first.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        answer = await client.chat.completions.create(**ASK)
    assert answer.choices[0].finish_reason == "tool_calls"


FORK = """
import os, sys
from openai_ooospec import OpenAI

def ask():
    with OpenAI(base_url=sys.argv[1], api_key="key", sidecar=sys.argv[2], max_retries=0) as client:
        client.prepare([])
        assert client.wait_until_known()
        tools = [{"type": "function", "function": {"name": "f"}}]
        client.chat.completions.create(model="m", messages=[], tools=tools)

ask()
child = os.fork()
if child == 0:
    ask()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_forked_child_starts_afresh(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target = scripted_target(REPLY)
    command = [sys.executable, "-W", "ignore", "-c", FORK, target.base_url, scripted_sidecar().url]
    subprocess.run(command, check=True, timeout=60)
    assert ["ooospec_id" in body["vllm_xargs"] for body in target.chats] == [True, True]


EXIT = """
import sys
from openai_ooospec import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="key", sidecar=sys.argv[2], max_retries=0)
client.prepare([])
assert client.wait_until_known()
tools = [{"type": "function", "function": {"name": "f"}}]
client.chat.completions.create(model="m", messages=[], tools=tools)
print("answered")
sys.stdin.readline()
"""


def test_a_process_ends_quietly_before_its_sidecar_answers(
    scripted_target: TargetMaker, scripted_sidecar: SidecarMaker
) -> None:
    ended = threading.Event()

    def answer(prompt: str) -> str:
        ended.wait(60)
        return " 0"

    target, sidecar = scripted_target(REPLY), scripted_sidecar(answer)
    command = [sys.executable, "-W", "ignore", "-c", EXIT, target.base_url, sidecar.url]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            assert sidecar.wait_for(lambda: bool(sidecar.waves), 30)
            said, complaints = process.communicate("\n", timeout=50)
        finally:
            process.kill()
            ended.set()
    assert (process.returncode, said, complaints) == (0, "answered\n", "")
    assert "ooospec_id" in target.chats[0]["vllm_xargs"]  # a hint was to come


def test_a_client_of_another_class_is_refused() -> None:
    azure = openai.AzureOpenAI(azure_endpoint="http://127.0.0.1:9", api_key="k", api_version="1")
    with pytest.raises(TypeError, match="'AzureOpenAI'"):
        accelerate_client(azure)


@pytest.mark.parametrize("name", ["workload_identity", "_provider"])
def test_a_client_without_an_api_key_is_refused_and_its_model_left_alone(name: str, caplog: Any) -> None:
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="key")
    assert isinstance(accelerate_client(client), OpenAI)
    setattr(client, name, object())
    with pytest.raises(TypeError, match=f"by '{name.strip('_')}'"):
        accelerate_client(client)
    model = ChatOpenAI(model="m", base_url="http://127.0.0.1:9/v1", api_key="key")
    setattr(model.root_client, name, object())
    assert accelerate(model).root_client is model.root_client
    assert "is used without acceleration" in caplog.text


class TestSdkSeam:
    def test_the_installed_sdk_has_what_we_need(self) -> None:
        assert obstacle() == ""

    def test_one_without_the_hook_is_told_of(self) -> None:
        class Bare:
            pass

        assert "has no `Bare._prepare_options`" in obstacle(Bare)
        assert "pip install 'openai>=2,<4'" in obstacle(openai.OpenAI, Bare)
