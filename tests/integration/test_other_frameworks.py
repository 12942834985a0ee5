"""The OpenAI Agents SDK and pydantic-ai with our client: accelerated, and the same outcome as with the stock client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import openai
import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
)
from openai_ooospec import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent as TypedAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from ooospec_agents.testing import ScriptedTarget, oblige
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker

QUESTION = "How tall is 'Galdhøpiggen'? 2469 m?"
QUIET = RunConfig(tracing_disabled=True)


class Height(BaseModel):
    """The height of a mountain."""

    mountain: str
    metres: int


@function_tool
def height(mountain: str) -> str:
    """The height of a mountain."""
    return f"{mountain}: 2469 m"


async def agents_chat(client: openai.AsyncOpenAI) -> Any:
    model = OpenAIChatCompletionsModel(model="scripted", openai_client=client)
    agent = Agent(name="A", model=model, tools=[height])
    return (await Runner.run(agent, QUESTION, run_config=QUIET)).final_output


async def agents_streamed(client: openai.AsyncOpenAI) -> Any:
    model = OpenAIChatCompletionsModel(model="scripted", openai_client=client)
    run = Runner.run_streamed(Agent(name="A", model=model, tools=[height]), QUESTION, run_config=QUIET)
    kinds = [event.type async for event in run.stream_events()]
    return run.final_output, kinds.count("run_item_stream_event")


async def agents_responses(client: openai.AsyncOpenAI) -> Any:
    model = OpenAIResponsesModel(model="scripted", openai_client=client)
    return (await Runner.run(Agent(name="A", model=model, tools=[height]), QUESTION, run_config=QUIET)).final_output


async def typed(client: openai.AsyncOpenAI) -> Any:
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
    return (await TypedAgent(model, output_type=Height).run(QUESTION)).output


async def typed_streamed(client: openai.AsyncOpenAI) -> Any:
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
    async with TypedAgent(model, output_type=Height).run_stream(QUESTION) as run:
        return await run.get_output()


WAYS = [agents_chat, agents_streamed, agents_responses, typed, typed_streamed]


def bodies(target: ScriptedTarget) -> list[dict[str, Any]]:
    return [*target.chats, *target.bodies("/v1/responses")]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_it_is_accelerated_and_says_the_same(
    scripted_target: TargetMaker, scripted_sidecar: SidecarMaker, way: Callable[[Any], Awaitable[Any]]
) -> None:
    target, plain = scripted_target(oblige), scripted_target(oblige, plugin=False)
    async with AsyncOpenAI(base_url=target.base_url, api_key="k", sidecar=scripted_sidecar().url) as client:
        client.prepare([])
        assert await asyncio.to_thread(client.wait_until_known)
        ours = await way(client)
    async with openai.AsyncOpenAI(base_url=plain.base_url, api_key="k") as client:
        assert await way(client) == ours
    assert bodies(target)
    assert all("ooospec_id" in body["vllm_xargs"] for body in bodies(target))
    assert not any("vllm_xargs" in body for body in bodies(plain))
