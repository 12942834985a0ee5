"""SpeculativeModelNode in a graph, and ChatOoOSpec in the stock agent."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph_ooospec import SpeculativeModelNode
from openai_ooospec import OpenAI

from ooospec_agents.testing import ScriptedTarget, oblige
from ooospec_agents.testing.fixtures import TargetMaker

QUESTION = {"messages": [HumanMessage("How tall is 'Galdhøpiggen'?")]}


@tool
def height(mountain: str) -> str:
    """The height of a mountain."""
    return f"{mountain}: 2469 m"


def chat(target: ScriptedTarget) -> ChatOoOSpec:
    return ChatOoOSpec(model="scripted", base_url=target.base_url, api_key="key")


def graph_of(node: SpeculativeModelNode) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("model", node)
    graph.add_node("tools", ToolNode([height]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


def kinds(result: Any) -> list[str]:
    return [message.type for message in result["messages"]]


@pytest.fixture
def target(scripted_target: TargetMaker) -> ScriptedTarget:
    return scripted_target(oblige)


def test_the_node_runs_an_agent_loop(target: ScriptedTarget) -> None:
    result = graph_of(SpeculativeModelNode(chat(target), [height])).invoke(QUESTION)
    assert kinds(result) == ["human", "ai", "tool", "ai"]
    assert result["messages"][1].tool_calls[0]["args"] == {"mountain": "Galdhøpiggen"}


def test_the_node_runs_in_an_event_loop(target: ScriptedTarget) -> None:
    graph = graph_of(SpeculativeModelNode(chat(target), [height]))
    assert kinds(asyncio.run(graph.ainvoke(QUESTION))) == ["human", "ai", "tool", "ai"]


def test_what_a_call_adds_reaches_the_model(target: ScriptedTarget) -> None:
    node = SpeculativeModelNode(chat(target), [height])
    node.invoke(QUESTION, stop=["END"])
    asyncio.run(node.ainvoke(QUESTION, stop=["STOP"]))
    assert [body["stop"] for body in target.chats] == [["END"], ["STOP"]]


def test_making_the_node_prepares_the_target(target: ScriptedTarget) -> None:
    SpeculativeModelNode(chat(target), [height])
    assert target.wait_for(lambda: bool(target.bodies("/v1/ooospec/prepare")))


def test_tokens_stream_out_of_the_node(target: ScriptedTarget) -> None:
    graph = graph_of(SpeculativeModelNode(chat(target), [height]))
    chunks = [chunk for chunk, _ in graph.stream(QUESTION, stream_mode="messages")]
    assert sum(isinstance(chunk, AIMessageChunk) for chunk in chunks) > 2


def test_a_stock_model_is_accelerated(target: ScriptedTarget) -> None:
    stock = ChatOpenAI(model="scripted", base_url=target.base_url, api_key="key")
    node = SpeculativeModelNode(stock)
    assert type(node.model) is ChatOpenAI
    assert isinstance(node.model.root_client, OpenAI)


def test_other_messages_keys_and_attributes(target: ScriptedTarget) -> None:
    class State:
        talk = QUESTION["messages"]

    node = SpeculativeModelNode(chat(target), messages_key="talk")
    assert node.invoke(State())["talk"][0].content == "You said: How tall is 'Galdhøpiggen'?"


@pytest.mark.parametrize("kind", [ChatOoOSpec, ChatOpenAI])
@pytest.mark.parametrize("tools", [None, []])
def test_a_node_without_tools_asks_for_none(target: ScriptedTarget, kind: Any, tools: Any) -> None:
    model = kind(model="scripted", base_url=target.base_url, api_key="key")
    assert kinds(SpeculativeModelNode(model, tools, tool_choice="any").invoke(QUESTION)) == ["ai"]
    assert "tools" not in target.chats[0]


def test_tools_need_a_chat_model() -> None:
    model = RunnableLambda(lambda _: AIMessage("hi"))
    with pytest.raises(TypeError, match="bind them yourself"):
        SpeculativeModelNode(model, [height])


def test_the_stock_agent_takes_the_model(target: ScriptedTarget) -> None:
    agent = create_agent(chat(target), [height])
    result = agent.invoke(QUESTION)
    assert kinds(result) == ["human", "ai", "tool", "ai"]
    # The last answer comes at the earliest after the status, which was asked for when tools were bound.
    assert [message["role"] for message in target.chats[1]["messages"]] == ["user", "assistant", "tool"]
