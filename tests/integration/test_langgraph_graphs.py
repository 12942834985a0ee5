"""Whole graphs: persistence, interrupts, stream modes, branches, subgraphs, several agents, middleware."""

from __future__ import annotations

import asyncio
import operator
import warnings
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec, OoOSpecMiddleware
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, create_react_agent, tools_condition
from langgraph.types import Command, interrupt
from langgraph_ooospec import SpeculativeModelNode
from openai_ooospec import OpenAI
from pydantic import BaseModel

from ooospec_agents.testing import Call, Reply, ScriptedTarget, oblige
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker

QUESTION: Any = {"messages": [HumanMessage("How tall is 'Galdhøpiggen'?")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}
KINDS = ["human", "ai", "tool", "ai"]
ran: list[str] = []


@tool
def height(mountain: str) -> str:
    """The height of a mountain."""
    ran.append(mountain)
    return f"{mountain}: 2469 m"


@tool
def ask_first(mountain: str) -> str:
    """Asks a person before it answers."""
    answer = interrupt(f"May I climb {mountain}?")
    ran.append(mountain)
    return f"{mountain}: {answer}"


@pytest.fixture
def target(scripted_target: TargetMaker) -> ScriptedTarget:
    ran.clear()
    return scripted_target(oblige)


def chat(target: ScriptedTarget, **options: Any) -> ChatOoOSpec:
    return ChatOoOSpec(model="scripted", base_url=target.base_url, api_key="key", **options)


def stock(target: ScriptedTarget) -> ChatOpenAI:
    return ChatOpenAI(model="scripted", base_url=target.base_url, api_key="key")


def agent_graph(target: ScriptedTarget, tools: list[Any], **options: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("model", SpeculativeModelNode(chat(target), tools))
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(**options)


def stock_agent(target: ScriptedTarget, tools: list[Any], **options: Any) -> Any:
    return create_agent(chat(target), tools, **options)


def react_agent(target: ScriptedTarget, tools: list[Any], **options: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):  # it is deprecated, and much used
        return create_react_agent(chat(target), tools, **options)


ways = pytest.mark.parametrize("make", [agent_graph, stock_agent, react_agent])


def kinds(state: Any) -> list[str]:
    return [message.type for message in state["messages"]]


@ways
def test_the_loop_runs_sync_and_async(target: ScriptedTarget, make: Any) -> None:
    graph = make(target, [height])
    assert kinds(graph.invoke(QUESTION)) == KINDS
    assert kinds(asyncio.run(graph.ainvoke(QUESTION))) == KINDS


@ways
def test_a_checkpointed_thread_goes_on(target: ScriptedTarget, make: Any) -> None:
    graph = make(target, [height], checkpointer=InMemorySaver())
    graph.invoke(QUESTION, THREAD)
    state = graph.invoke({"messages": [HumanMessage("And 'Glittertind'?")]}, THREAD)
    assert kinds(state) == KINDS * 2
    assert ran == ["Galdhøpiggen", "Glittertind"]
    assert [message["role"] for message in target.chats[2]["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


@ways
def test_an_interrupted_tool_is_resumed(target: ScriptedTarget, make: Any) -> None:
    graph = make(target, [ask_first], checkpointer=InMemorySaver())
    graph.invoke(QUESTION, THREAD)
    assert ran == []
    assert len(target.chats) == 1
    state = graph.invoke(Command(resume="yes"), THREAD)
    assert ran == ["Galdhøpiggen"]
    assert state["messages"][2].content == "Galdhøpiggen: yes"
    assert len(target.chats) == 2, "the model was asked again for what it had answered"


@ways
def test_stream_mode_messages(target: ScriptedTarget, make: Any) -> None:
    parts = list(make(target, [height]).stream(QUESTION, stream_mode="messages"))
    chunks = [chunk for chunk, _ in parts if isinstance(chunk, AIMessageChunk)]
    pieces = [piece for chunk in chunks for piece in chunk.tool_call_chunks]
    assert "".join(piece["name"] or "" for piece in pieces) == "height"
    assert "".join(piece["args"] or "" for piece in pieces) == '{"mountain": "Galdhøpiggen"}'
    assert "".join(chunk.text for chunk in chunks) == "You said: How tall is 'Galdhøpiggen'?"
    assert {meta["langgraph_node"] for chunk, meta in parts if isinstance(chunk, AIMessageChunk)} <= {"model", "agent"}


@ways
def test_stream_mode_updates(target: ScriptedTarget, make: Any) -> None:
    updates = list(make(target, [height]).stream(QUESTION, stream_mode="updates"))
    assert [kinds(state) for update in updates for state in update.values()] == [["ai"], ["tool"], ["ai"]]


async def test_asynchronous_stream_modes_together(target: ScriptedTarget) -> None:
    graph = agent_graph(target, [height])
    modes = [mode async for mode, _ in graph.astream(QUESTION, stream_mode=["messages", "updates", "values"])]
    assert set(modes) == {"messages", "updates", "values"}


def test_parallel_branches(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target, sidecar = scripted_target(oblige), scripted_sidecar()

    class State(TypedDict):
        messages: list[AnyMessage]
        found: Annotated[list[Any], operator.add]

    model = chat(target, sidecar=sidecar.url)
    graph = StateGraph(State)
    for name in "abcd":
        node = SpeculativeModelNode(model, [height], tool_choice="any")
        graph.add_node(name, node | (lambda update, name=name: {"found": [(name, update["messages"][0].tool_calls)]}))
        graph.add_edge(START, name)
    found = dict(graph.compile().invoke({"messages": QUESTION["messages"], "found": []})["found"])
    assert set(found) == set("abcd")
    assert all(calls[0]["args"] == {"mountain": "Galdhøpiggen"} for calls in found.values())


def test_a_graph_in_a_graph(target: ScriptedTarget) -> None:
    outer = StateGraph(MessagesState)
    outer.add_node("inner", agent_graph(target, [height]))
    outer.add_edge(START, "inner")
    graph = outer.compile(checkpointer=InMemorySaver())
    spaces = [space for space, _ in graph.stream(QUESTION, THREAD, stream_mode="updates", subgraphs=True)]
    assert any(space for space in spaces)
    assert kinds(graph.get_state(THREAD).values) == KINDS


def test_other_forms_of_state(target: ScriptedTarget) -> None:
    class Talk(BaseModel):
        talk: Annotated[list[AnyMessage], add_messages]
        summary: list[AnyMessage] = []

    node = SpeculativeModelNode(chat(target), messages_key="talk", input_messages_key="summary", name="talker")
    graph = StateGraph(Talk)
    graph.add_node(node)
    graph.add_edge(START, "talker")
    graph.add_edge("talker", END)
    state = graph.compile().invoke({"talk": [HumanMessage("long")], "summary": [HumanMessage("short")]})
    assert [message.text for message in state["talk"]] == ["long", "You said: short"]
    (answer,) = node.invoke([HumanMessage("bare")])
    assert answer.text == "You said: bare"


def test_a_supervisor_and_two_agents_share_one_sidecar(
    scripted_target: TargetMaker, scripted_sidecar: SidecarMaker
) -> None:
    def script(body: Any) -> Reply:
        names = [entry["function"]["name"] for entry in body.get("tools") or []]
        done = sum(message["role"] == "tool" for message in body["messages"])
        if "ask_geographer" not in names:
            return oblige(body)
        steps = [Call("ask_geographer", {"question": "Height of 'A'?"}), Call("ask_poet", {"question": "Praise 'B'"})]
        return Reply(calls=(steps[done],)) if done < 2 else Reply(content="done")

    target, sidecar = scripted_target(script), scripted_sidecar()
    model = chat(target, sidecar=sidecar.url)

    @tool
    def praise(mountain: str) -> str:
        """Praise a mountain."""
        return f"O {mountain}!"

    def as_tool(name: str, agent: Any) -> Any:
        @tool(name)
        def ask(question: str) -> str:
            """Ask another agent."""
            return agent.invoke({"messages": [HumanMessage(question)]})["messages"][-2].content

        return ask

    agents = [
        as_tool("ask_geographer", create_agent(model, [height])),
        as_tool("ask_poet", create_agent(model, [praise])),
    ]
    model.bind_tools([height])
    assert model.wait_until_known()
    state = create_agent(model, agents).invoke(QUESTION)
    results = [message.content for message in state["messages"] if message.type == "tool"]
    assert results == ["A: 2469 m", "O B!"]
    assert state["messages"][-1].content == "done"
    catalogs = ("ask_geographer", "height", "praise")
    assert sidecar.wait_for(lambda: all(any(f"] {name}(" in prompt for prompt in sidecar.prompts) for name in catalogs))
    ids = [body["vllm_xargs"]["ooospec_id"] for body in target.chats]
    assert len(set(ids)) == len(ids) == 7


class Height(BaseModel):
    """The height of a mountain."""

    mountain: str
    metres: int


@pytest.mark.parametrize("strategy", [ToolStrategy(Height), ProviderStrategy(Height), Height])
def test_an_agent_answers_in_a_form(scripted_target: TargetMaker, strategy: Any) -> None:
    target = scripted_target(oblige)
    state = create_agent(chat(target), [], response_format=strategy).invoke(
        {"messages": [HumanMessage("'Galdhøpiggen' has 2469 m")]}
    )
    assert state["structured_response"] == Height(mountain="Galdhøpiggen", metres=2469)


def test_a_person_may_forbid_a_call(target: ScriptedTarget) -> None:
    person = HumanInTheLoopMiddleware(interrupt_on={"height": True})
    agent = create_agent(chat(target), [height], middleware=[person], checkpointer=InMemorySaver())
    agent.invoke(QUESTION, THREAD)
    assert ran == []
    agent.invoke(Command(resume={"decisions": [{"type": "reject", "message": "no"}]}), THREAD)
    assert ran == []


class TestMiddleware:
    def test_a_stock_model_is_accelerated_and_left_as_it_was(
        self, scripted_target: TargetMaker, scripted_sidecar: SidecarMaker
    ) -> None:
        target, sidecar = scripted_target(oblige), scripted_sidecar()
        model = stock(target)
        agent = create_agent(model, [height], middleware=[OoOSpecMiddleware(sidecar=sidecar.url)])
        for _ in range(2):
            assert kinds(agent.invoke(QUESTION)) == KINDS
            assert target.wait_for(lambda: any(request.path.endswith("/status") for request in target.requests))
        assert kinds(asyncio.run(agent.ainvoke(QUESTION))) == KINDS
        assert not isinstance(model.root_client, OpenAI)
        assert all(body["tools"][0]["function"]["name"] == "height" for body in target.chats)
        assert "ooospec_id" in target.chats[-1]["vllm_xargs"]

    def test_without_it_nothing_is_added(self, target: ScriptedTarget) -> None:
        create_agent(stock(target), [height]).invoke(QUESTION)
        assert not any("vllm_xargs" in body for body in target.chats)
        assert not any("x-ooospec-report" in request.headers for request in target.requests)

    def test_a_model_of_another_kind_is_called_as_it_is(self) -> None:
        model = GenericFakeChatModel(messages=iter([AIMessage("hi")]))
        state = create_agent(model, middleware=[OoOSpecMiddleware()]).invoke(QUESTION)
        assert state["messages"][-1].content == "hi"

    def test_our_model_is_called_as_it_is(self, target: ScriptedTarget) -> None:
        agent = create_agent(chat(target), [height], middleware=[OoOSpecMiddleware()])
        assert kinds(agent.invoke(QUESTION)) == KINDS
