from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from rich.console import Console

from ooospec_agents.bench.demo import TaskResult, news, table_of
from ooospec_agents.bench.demo_agent import Turn, turns_of
from ooospec_agents.bench.demo_tasks import TASKS, TOOLS


def turn(seconds: float, ids: list[int], steps: int = 0) -> Turn:
    hint = {"arrived": True, "at_token": 0, "used": True, "after_ms": 1.0}
    return Turn(seconds, ids, [1], {"steps": steps, "hint": hint} if steps else None)


def test_ten_tasks_half_of_them_derived() -> None:
    assert (len(TASKS), sum(task.derived for task in TASKS)) == (10, 5)
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)


def test_a_recorded_run_is_cut_before_each_answer_of_the_model() -> None:
    user, call, tool, end = HumanMessage("?"), AIMessage("c"), ToolMessage("r", tool_call_id="1"), AIMessage("e")
    assert turns_of([user, call, tool, end]) == [[user], [user, call, tool]]


def test_a_row_compares_both_sides() -> None:
    result = TaskResult(TASKS[0], "done", recorded=[[1, 2], [3]])
    result.plain = [turn(2.0, [1, 2]), turn(1.0, [3])]
    result.ours = [turn(0.5, [1, 2], 1), turn(1.0, [3], 1)]
    row = result.to_json()
    assert (row["plain_s"], row["ours_s"]) == (3.0, 1.5)
    assert (row["identical"], row["reproducible"]) == (True, True)
    assert (row["steps_plain"], row["steps_ours"], row["hints_used"]) == (3, 2, 2)


def test_one_differing_turn_makes_a_task_differ() -> None:
    result = TaskResult(TASKS[0], "done", recorded=[[1, 2]], plain=[turn(1.0, [1, 2])], ours=[turn(1.0, [1, 9], 1)])
    assert result.to_json()["identical"] is False


def test_the_table_shows_the_ratio_of_totals() -> None:
    done = TaskResult(TASKS[0], "done", recorded=[[1]], plain=[turn(3.0, [1])], ours=[turn(1.5, [1], 1)])
    console = Console(width=160)
    with console.capture() as shown:
        console.print(table_of([done, TaskResult(TASKS[1])]))
    assert shown.get().count("2.00x") == 2
    assert "waiting" in shown.get()


def test_each_new_state_is_told_once() -> None:
    first, second = TaskResult(TASKS[0]), TaskResult(TASKS[1])
    told = {TASKS[0].name: "waiting", TASKS[1].name: "waiting"}
    first.state = "turn 1, plain"
    assert news([first, second], told) == [f"{TASKS[0].name}: turn 1, plain"]
    assert news([first, second], told) == []
