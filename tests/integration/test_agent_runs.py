"""Whole tasks on scripted targets: where the time went."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import pytest
from langchain_openai import ChatOpenAI

from ooospec_agents.bench.agent_runs import AgentRun, ToolClock, result_of, run_task, table_of
from ooospec_agents.bench.demo import accelerated_chat
from ooospec_agents.bench.demo_agent import Side
from ooospec_agents.bench.demo_tasks import TASKS
from ooospec_agents.testing import Call, Reply, ScriptedTarget

CALL = Reply(calls=(Call("look_up_order", {"order_id": "ORD-58213", "email": "m@example.com"}),))


def script(body: dict[str, Any]) -> Reply:
    return CALL if body["messages"][-1]["role"] == "user" else Reply(content="It was shipped.")


@pytest.mark.parametrize("factory", [ChatOpenAI, accelerated_chat])
def test_a_task_is_split_into_target_tools_and_rest(factory: Any) -> None:
    with ScriptedTarget(script) as target, Side(factory, target.url, "m") as side:
        run = run_task(side, TASKS[0])
    assert (run.turns, run.tool_calls) == (2, 1)
    assert run.target_s > 0
    assert run.tools_s > 0
    assert run.rest_s > 0
    assert run.target_s + run.tools_s + run.rest_s == pytest.approx(run.wall_s)


def test_tools_that_run_at_once_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    clock, first, second = ToolClock(), uuid4(), uuid4()
    clock.on_tool_start(run_id=first)
    now[0] = 1.0
    clock.on_tool_start(run_id=second)
    now[0] = 3.0
    clock.on_tool_end(run_id=first)
    now[0] = 4.0
    clock.on_tool_error(run_id=second)
    assert (clock.seconds, clock.calls) == (4.0, 2)


def test_the_result_adds_up_and_tells_where_outputs_differ() -> None:
    plain = [AgentRun(10.0, 8.0, 1.0, 2, 1, 90, [[1], [2]]), AgentRun(6.0, 4.0, 1.0, 2, 1, 50, [[3]])]
    own = [AgentRun(4.0, 2.0, 1.0, 2, 1, 20, [[1], [2]]), AgentRun(4.0, 2.0, 1.0, 2, 1, 20, [[4]])]
    result = result_of(TASKS[:2], plain, own)
    assert result["speedup"] == 2.0
    assert result["totals"]["plain"] == {"wall_s": 16.0, "target_s": 12.0, "tools_s": 2.0, "rest_s": 2.0}
    assert [row["identical"] for row in result["rows"]] == [True, False]
    assert table_of(result).row_count == 2
