"""The demo's agent on two scripted targets: a run is recorded, and its turns are put to both."""

from __future__ import annotations

from typing import Any

import httpx
from langchain_openai import ChatOpenAI

from ooospec_agents.bench.demo import TaskResult, accelerated_chat, run_ours, run_plain, run_task
from ooospec_agents.bench.demo_agent import Side, turns_of
from ooospec_agents.bench.demo_tasks import TASKS
from ooospec_agents.testing import Call, Reply, ScriptedTarget

CALL = Reply(calls=(Call("look_up_order", {"order_id": "ORD-58213", "email": "m@example.com"}),))


def script(body: dict[str, Any]) -> Reply:
    """A call for a question, a sentence for a tool's result."""
    return CALL if body["messages"][-1]["role"] == "user" else Reply(content="It was shipped.")


def test_a_recorded_run_ends_with_the_answer_after_the_tool() -> None:
    with ScriptedTarget(script, plugin=False) as stock, Side(ChatOpenAI, stock.url, "m") as side:
        messages = side.run(TASKS[0])
        assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
        assert len(turns_of(messages)) == 2


def test_an_agent_that_never_ends_is_stopped() -> None:
    with ScriptedTarget(CALL, plugin=False) as stock, Side(ChatOpenAI, stock.url, "m") as side:
        assert 2 <= len(turns_of(side.run(TASKS[0]))) <= 3


def test_one_turn_is_one_model_call_and_runs_no_tool() -> None:
    with ScriptedTarget(script) as target, Side(accelerated_chat, target.url, "m") as side:
        turn = side.turn(turns_of(side.run(TASKS[0]))[0])
        assert len(target.chats) == 3
        assert turn.report is not None


def test_both_sides_get_the_same_turns() -> None:
    result = TaskResult(TASKS[0])
    with (
        ScriptedTarget(script, plugin=False) as stock,
        ScriptedTarget(script) as target,
        httpx.Client() as client,
        Side(ChatOpenAI, stock.url, "m") as plain,
        Side(accelerated_chat, target.url, "m") as own,
    ):
        run_task(result, plain, own, client, lambda: None)
        timed = [body for body in target.chats if body.get("max_tokens") != 1]
        warm = [body for body in target.chats if body.get("max_tokens") == 1]
        assert [body["messages"] for body in timed] == [body["messages"] for body in stock.chats[:2]]
        assert [body["vllm_xargs"] for body in warm] == [{"ooospec": "off"}] * 2
    assert result.state == "done"
    assert (len(result.plain), len(result.ours)) == (2, 2)


def test_one_server_after_the_other_does_the_same_work() -> None:
    result = TaskResult(TASKS[0])
    with ScriptedTarget(script, plugin=False) as stock, httpx.Client() as client:
        with Side(ChatOpenAI, stock.url, "m") as plain:
            run_plain([result], plain, client, lambda: None)
        timed_plain = [body["messages"] for body in stock.chats if body.get("max_tokens") != 1][-2:]
    with ScriptedTarget(script) as target, httpx.Client() as client, Side(accelerated_chat, target.url, "m") as own:
        run_ours([result], own, client, lambda: None)
        timed = [body["messages"] for body in target.chats if body.get("max_tokens") != 1]
        warm = [body for body in target.chats if body.get("max_tokens") == 1]
    assert timed == timed_plain
    assert [body["vllm_xargs"] for body in warm] == [{"ooospec": "off"}] * 2
    assert (result.state, len(result.plain), len(result.ours)) == ("done", 2, 2)
