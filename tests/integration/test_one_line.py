"""An agent written against `ChatOpenAI`: one line changed is client mode, none is server mode, and all say the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec
from langchain_openai import ChatOpenAI

from ooospec_agents.testing import ScriptedTarget, oblige
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker

TABLE = {"Which tool is called next": " 0", "value of mountain": " Galdhøpiggen"}
QUESTIONS = [f"How tall is '{name}'?" for name in ("Galdhøpiggen", "Glittertind", "Snøhetta")]


@tool
def height(mountain: str) -> str:
    """The height of a mountain."""
    return f"{mountain}: high"


def users_agent(model: Any) -> list[list[tuple[str, Any, Any]]]:
    """What the user wrote; returns all that the agent said and did."""
    agent = create_agent(model, [height])
    said = []
    for question in QUESTIONS:
        messages = agent.invoke({"messages": [HumanMessage(question)]})["messages"]
        said.append([(message.type, message.content, getattr(message, "tool_calls", None)) for message in messages])
    return said


def stock(target: ScriptedTarget) -> ChatOpenAI:
    return ChatOpenAI(model="scripted", base_url=target.base_url, api_key="key")


@pytest.fixture
def plain(scripted_target: TargetMaker) -> Any:
    return users_agent(stock(scripted_target(oblige, plugin=False)))


def accepted(target: ScriptedTarget) -> list[int]:
    return [report["accepted"].get("hint", 0) for report in target.reports if report["hint"]["used"]]


def test_client_mode(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker, plain: Any) -> None:
    target, sidecar = scripted_target(after_its_hint), scripted_sidecar(TABLE)
    model = ChatOoOSpec(model="scripted", base_url=target.base_url, api_key="key", sidecar=sidecar.url)
    model.bind_tools([height])
    assert model.wait_until_known()
    assert users_agent(model) == plain
    assert len(accepted(target)) == len(QUESTIONS)
    assert all(tokens > 0 for tokens in accepted(target))


def test_server_mode(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker, plain: Any) -> None:
    target = scripted_target(oblige, sidecar=scripted_sidecar(TABLE).url)
    assert users_agent(stock(target)) == plain
    assert len(accepted(target)) == len(QUESTIONS)
    assert all(tokens > 0 for tokens in accepted(target))
    assert not any("vllm_xargs" in body for body in target.chats)


def test_without_a_sidecar_no_hint_is_accepted(scripted_target: TargetMaker, plain: Any) -> None:
    target = scripted_target(oblige)
    assert users_agent(stock(target)) == plain
    assert accepted(target) == []


def after_its_hint(body: dict[str, Any]) -> Any:
    reply = oblige(body)
    return replace(reply, wait_for_hint_s=5.0) if reply.calls else reply
