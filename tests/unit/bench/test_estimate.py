from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ooospec_agents.bench.data import DataError
from ooospec_agents.bench.estimate import STOP, RoughCodec, estimate, main, verdict
from ooospec_agents.bench.traffic import Exchange, Traffic, read_traffic

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ASKED = [{"role": "user", "content": "Weather in Oslo?"}]
CALL = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
ANSWER = {"role": "assistant", "content": None, "tool_calls": [CALL]}
REQUEST = {"messages": ASKED, "tools": [TOOL]}
WANTED = Exchange(
    [{"role": "user", "content": "Weather in Oslo?"}],
    [TOOL],
    "",
    [{"name": "get_weather", "arguments": {"city": "Oslo"}}],
)
LANGCHAIN_MESSAGE = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "HumanMessage"],
    "kwargs": {"content": "Weather in Oslo?", "type": "human"},
}
LANGCHAIN_ANSWER = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "AIMessage"],
    "kwargs": {"content": "", "tool_calls": [{"name": "get_weather", "args": {"city": "Oslo"}, "id": "c"}]},
}


@pytest.mark.parametrize(
    "record",
    [
        {"request": REQUEST, "response": {"choices": [{"message": ANSWER}]}},
        {**REQUEST, "choices": [{"message": ANSWER}]},
        {"messages": [*ASKED, ANSWER], "tools": [TOOL]},
        {"custom_id": "1", "body": REQUEST, "response": {"status_code": 200, "body": {"choices": [{"message": ANSWER}]}}},
        {
            "run_type": "llm",
            "inputs": {"messages": [[LANGCHAIN_MESSAGE]]},
            "outputs": {"generations": [[{"text": "", "message": LANGCHAIN_ANSWER}]]},
            "extra": {"invocation_params": {"tools": [TOOL]}},
        },
        {"run_type": "llm", "inputs": REQUEST, "outputs": {"choices": [{"message": ANSWER}]}},
        {"type": "GENERATION", "input": REQUEST, "output": ANSWER},
        {"type": "GENERATION", "input": json.dumps(REQUEST), "output": json.dumps(ANSWER)},
        {"type": "GENERATION", "input": ASKED, "tools": [TOOL["function"]], "output": [ANSWER]},
    ],
    ids=["pair", "flat", "fine-tuning", "batch", "langsmith", "langsmith openai", "langfuse", "langfuse text", "langfuse list"],
)  # fmt: skip
def test_every_form_says_the_same(record: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "traffic.jsonl"
    path.write_text(json.dumps(record) + "\n")
    assert read_traffic(path).exchanges == [WANTED]


def test_an_export_of_whole_runs_tells_the_models_share(tmp_path: Path) -> None:
    times = {"start_time": "2027-01-01T10:00:00", "trace_id": "t"}
    root = {"run_type": "chain", **times, "end_time": "2027-01-01T10:00:10Z", "inputs": {}, "outputs": {}}
    model = {
        "run_type": "llm", **times, "end_time": "2027-01-01T10:00:04", "parent_run_id": "x",
        "inputs": REQUEST, "outputs": {"choices": [{"message": ANSWER}]},
    }  # fmt: skip
    path = tmp_path / "runs.json"
    path.write_text(json.dumps({"runs": [root, model, {"run_type": "tool", "parent_run_id": "x"}]}))
    traffic = read_traffic(path)
    assert (len(traffic.exchanges), traffic.unread, traffic.run_seconds) == (1, 2, {"t": 10.0})
    assert estimate(traffic, RoughCodec(), [STOP]).model_share == 0.4


def test_calls_gain_and_the_better_hint_gains_more() -> None:
    found = estimate(Traffic([WANTED] * 3), RoughCodec(), [STOP])
    assert (found.answers, found.with_calls) == (3, 3)
    assert found.call_tokens == found.tokens - 3  # all but the ids that end the answers
    steps = {one.method: one.steps for one in found.methods}
    assert steps["perfect hints"] <= steps["ooospec"] <= steps["toolspec"] < found.tokens
    assert "shorter" in verdict(found)


def test_answers_in_text_would_not_gain_and_that_is_said() -> None:
    text = "Nobody can foretell which of seventeen purple umbrellas grandmother liked best last winter."
    found = estimate(Traffic([Exchange(ASKED, [], text)] * 2), RoughCodec(), [STOP])
    assert found.call_tokens == 0
    assert [one.steps for one in found.methods] == [found.tokens] * 4
    assert verdict(found) == (
        "This traffic would not gain: calls are 0% of its output tokens, and a whole run would be 0.0% shorter at best."
    )


def test_a_run_that_waits_for_its_tools_would_not_gain_either() -> None:
    slow = Exchange(ASKED, [TOOL], "", WANTED.calls, run="t", seconds=1.0)
    found = estimate(Traffic([slow], run_seconds={"t": 100.0}), RoughCodec(), [STOP])
    assert "would not gain" in verdict(found)


def test_reasoning_that_nobody_sees_is_not_drafted() -> None:
    hidden = Exchange(ASKED, [TOOL], "", WANTED.calls, reasoning_tokens=1000)
    found = estimate(Traffic([hidden]), RoughCodec(), [STOP])
    assert found.tokens > 1000
    assert all(one.steps > 1000 for one in found.methods)


def test_the_rough_tokenizer_loses_nothing() -> None:
    codec = RoughCodec()
    for text in ('{"city": "São Tomé", "n": -12.5e3}', "a\n\n\tb  c", "日本語 ok_then <tool_call>", ""):
        assert codec.decode(codec.encode(text)) == text


def test_the_command_prints_a_table_and_a_verdict(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(main)
    (tmp_path / "t.jsonl").write_text(json.dumps({"messages": [*ASKED, ANSWER], "tools": [TOOL]}) + "\n")
    done = CliRunner().invoke(app, [str(tmp_path / "t.jsonl"), "--json", str(tmp_path / "e.json")])
    assert done.exit_code == 0, done.output
    assert "1 answers, 1 with calls" in done.output
    assert json.loads((tmp_path / "e.json").read_text())["answers"] == 1
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    done = CliRunner().invoke(app, [str(tmp_path / "t.jsonl")])
    assert (done.exit_code, "no exchange" in done.output) == (1, True)


def test_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_traffic(tmp_path / "missing.jsonl")
