"""`ooospec traces` against a scripted teacher."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ooospec_agents.cli import app
from ooospec_agents.testing import Call, Reply, ScriptedTarget
from ooospec_agents.training.traces import Call as Answer
from ooospec_agents.training.traces import read_traces

WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"properties": {"city": {}}}}}


def request(number: int, text: str = "Rain in Oslo?", **more: Any) -> dict[str, Any]:
    return {"id": f"r{number}", "messages": [{"role": "user", "content": text}], "tools": [WEATHER], **more}


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps(request(number, f"Question {number}")) + "\n" for number in range(6)))
    return path


def traces(target: ScriptedTarget, *arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["traces", "--teacher", target.url, *map(str, arguments)])


def by_question(replies: dict[int, Reply]) -> Callable[[dict[str, Any]], Reply]:
    called = Reply(calls=(Call("get_weather", {"city": "Oslo"}),))
    return lambda body: replies.get(int(body["messages"][-1]["content"].split()[-1]), called)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_what_was_called_is_kept_and_what_was_not_readable_is_not_trained_on(asked: Path, tmp_path: Path) -> None:
    replies = {
        1: Reply(content="It rains."),
        2: Reply(calls=(Call("get_weather", '{"city": "Os'),), finish_reason="length"),
        3: Reply(content='```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'),
        4: Reply(calls=(Call("get_weather", "no JSON"),)),
    }
    out = tmp_path / "traces.jsonl"
    with ScriptedTarget(by_question(replies), model="teacher-1b") as target:
        result = traces(target, "--requests", asked, "--out", out, "--tool-choice", "auto")
        bodies = target.chats
    assert result.exit_code == 0, result.output
    assert {line["id"]: line["finish"] for line in lines(out)} == {
        "r0": "tool_calls",
        "r1": "stop",
        "r2": "length",
        "r3": "unread",
        "r4": "unread",
        "r5": "tool_calls",
    }
    call = (Answer("get_weather", {"city": "Oslo"}),)
    assert read_traces(out) == {"r0": call, "r1": (), "r5": call}
    assert {(body["model"], body["tool_choice"], body["temperature"]) for body in bodies} == {
        ("teacher-1b", "auto", 0.0)
    }
    assert "2 with calls, 1 without, 1 cut off" in result.output
    assert "2 look like calls" in result.output


def test_prose_that_names_a_function_is_no_call(asked: Path, tmp_path: Path) -> None:
    out = tmp_path / "traces.jsonl"
    with ScriptedTarget(Reply(content="I could use get_weather for that. Shall I?")) as target:
        traces(target, "--requests", asked, "--out", out, "--limit", "1")
    assert [line["finish"] for line in lines(out)] == ["stop"]


def test_it_goes_on_after_a_stop_in_the_middle_of_a_line(asked: Path, tmp_path: Path) -> None:
    out = tmp_path / "traces.jsonl"
    with ScriptedTarget(by_question({})) as target:
        traces(target, "--requests", asked, "--out", out, "--limit", "3")
        whole = out.read_text("utf-8")
        out.write_text(whole + '{"id": "r3", "cal', encoding="utf-8")
        result = traces(target, "--requests", asked, "--out", out)
        bodies = target.chats
    assert result.exit_code == 0, result.output
    assert sorted(line["id"] for line in lines(out)) == ["r0", "r1", "r2", "r3", "r4", "r5"]
    assert len(bodies) == 6


def test_what_a_server_refuses_is_counted_and_asked_again(asked: Path, tmp_path: Path) -> None:
    out = tmp_path / "traces.jsonl"
    with ScriptedTarget(by_question({2: Reply(status=400, error="too long")})) as target:
        result = traces(target, "--requests", asked, "--out", out)
    assert result.exit_code == 1
    assert "1 failed, the first with 400" in result.output
    assert "too long" in result.output
    assert len(lines(out)) == 5
    with ScriptedTarget(by_question({})) as target:
        assert traces(target, "--requests", asked, "--out", out).exit_code == 0
        assert len(target.chats) == 1


def test_a_server_that_goes_away_ends_it_and_loses_nothing(asked: Path, tmp_path: Path) -> None:
    out = tmp_path / "traces.jsonl"
    with ScriptedTarget(by_question({4: Reply(break_after=0)})) as target:
        result = traces(target, "--requests", asked, "--out", out, "--parallel", "1")
    assert result.exit_code == 1
    assert "the same command goes on from here" in result.output
    assert [line["id"] for line in lines(out)] == ["r0", "r1", "r2", "r3"]


def test_nobody_there_is_said(asked: Path, tmp_path: Path) -> None:
    with ScriptedTarget() as target:
        url = target.url
    result = CliRunner().invoke(
        app, ["traces", "--teacher", url, "--requests", str(asked), "--out", str(tmp_path / "o.jsonl")]
    )
    assert result.exit_code == 1
    assert "is it up" in result.output


def test_functions_of_the_evaluation_sets_are_refused(asked: Path, tmp_path: Path) -> None:
    held_out = tmp_path / "eval.jsonl"
    held_out.write_text(json.dumps(request(9)) + "\n")
    out = tmp_path / "traces.jsonl"
    with ScriptedTarget(by_question({1: Reply(content="It rains.")})) as target:
        result = traces(target, "--requests", asked, "--out", out, "--eval", held_out)
        assert result.exit_code == 0, result.output
        assert [line["id"] for line in lines(out)] == ["r1"]
        assert "5 called a function of the evaluation sets" in result.output
        gold = tmp_path / "gold.jsonl"
        gold.write_text(json.dumps(request(7, gold=[{"name": "get_weather", "arguments": {}}])) + "\n")
        refused = traces(target, "--requests", gold, "--out", out, "--eval", held_out)
    assert refused.exit_code == 1
    assert "'get_weather'" in refused.output


def test_another_file_is_not_taken_for_traces(asked: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes\n")
    with ScriptedTarget() as target:
        result = traces(target, "--requests", asked, "--out", notes)
    assert result.exit_code == 1
    assert "no trace" in result.output
    assert notes.read_text() == "my notes\n"
