"""Requests and traces on disk, and the guard against evaluation data."""

import json
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.training.traces import (
    Call,
    DataError,
    evaluation_functions,
    read_requests,
    read_traces,
    refuse_evaluation_calls,
)


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def request(**changes: Any) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {}}}
    return {"id": "a", "source": "s", "messages": [{"role": "user", "content": "hi"}], "tools": [tool], **changes}


def test_calls_count_before_gold(tmp_path: Path) -> None:
    gold, calls = [{"name": "old", "arguments": {}}], [{"name": "weather", "arguments": {"city": "Rome"}}]
    (read,) = read_requests(write(tmp_path / "r.jsonl", request(gold=gold, calls=calls)))
    assert read.calls == (Call("weather", {"city": "Rome"}),)


def test_a_request_without_an_answer_is_not_one_that_calls_nothing(tmp_path: Path) -> None:
    unknown, nothing = read_requests(write(tmp_path / "r.jsonl", request(), request(calls=[])))
    assert (unknown.known, nothing.known) == (False, True)


def test_arguments_of_a_trace_may_be_json_text(tmp_path: Path) -> None:
    trace = {"id": "a", "calls": [{"name": "weather", "arguments": '{"city": "Rome"}'}], "finish": "tool_calls"}
    assert read_traces(write(tmp_path / "t.jsonl", trace)) == {"a": (Call("weather", {"city": "Rome"}),)}


@pytest.mark.parametrize(
    "trace",
    [
        {"calls": [], "finish": "length"},
        {"calls": [{"name": "weather", "arguments": '{"city": "Ro'}], "finish": "tool_calls"},
        {"calls": [], "finish": "tool_calls"},
    ],
    ids=["cut off", "unreadable", "no call, yet not ended by itself"],
)
def test_a_trace_that_says_nothing_is_left_out(tmp_path: Path, trace: dict[str, Any]) -> None:
    assert read_traces(write(tmp_path / "t.jsonl", {"id": "a", **trace})) == {}


def test_a_trace_that_ended_in_text_is_kept_as_no_call(tmp_path: Path) -> None:
    assert read_traces(write(tmp_path / "t.jsonl", {"id": "a", "calls": [], "finish": "stop"})) == {"a": ()}


def test_every_function_bound_or_called_in_a_folder_of_evaluation_sets_is_named(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", request(gold=[{"name": "called", "arguments": {}}]))
    write(tmp_path / "two.jsonl", request(tools=[{"function": {"name": "bound"}}]))
    assert evaluation_functions(tmp_path) == {"weather", "called", "bound"}


def test_a_call_of_an_evaluation_function_is_refused_by_name(tmp_path: Path) -> None:
    answers = [("a", (Call("other", {}),)), ("b", (Call("other", {}), Call("weather", {})))]
    with pytest.raises(DataError, match=r"'weather' \(request 'b'\)"):
        refuse_evaluation_calls(tmp_path, answers, frozenset({"weather"}))


def test_calls_of_other_functions_pass(tmp_path: Path) -> None:
    refuse_evaluation_calls(tmp_path, [("a", (Call("other", {}),))], frozenset({"weather"}))


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(request()) + "\n{\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2: not JSON"):
        read_requests(path)


def test_a_folder_without_evaluation_sets_is_no_silent_pass(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No \*\.jsonl"):
        evaluation_functions(tmp_path)
