"""Fitting the weights by which functions are ranked: the fit, and the command."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.testing import CliRunner

from ooospec_agents.drafting.sources.functions import FEATURES
from ooospec_agents.training import functions, values
from ooospec_agents.training.traces import Call, Request

NAMES = ("book_flight", "cancel_order", "translate_text", "play_music")


def tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"subject": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}


def request(number: int) -> Request:
    """A request whose last words name the function that is called."""
    name = NAMES[number % len(NAMES)]
    return Request(
        id=str(number),
        source="made",
        messages=({"role": "user", "content": f"Please {name.replace('_', ' ')} {number}"},),
        tools=tuple(map(tool, NAMES)),
        calls=(Call(name, {"subject": str(number)}),),
    )


def lines(*requests: Request) -> str:
    records = [
        {
            "id": one.id,
            "messages": one.messages,
            "tools": one.tools,
            "gold": [{"name": call.name, "arguments": call.arguments} for call in one.calls],
        }
        for one in requests
    ]
    return "".join(json.dumps(record) + "\n" for record in records)


def test_what_a_target_called_counts_for_more_than_the_reference() -> None:
    called = {"0": (Call("play_music", {}),)}
    made = list(functions.choices([request(0)], called, random.Random(0)))
    assert (made[0].right, made[0].weight) == (3, functions.TRACED)
    assert made[1].weight == 1.0


def test_values_are_told_among_the_functions_of_another_request() -> None:
    other = Request("9", "made", request(0).messages, tuple(map(tool, "abcde")))
    asked = [*functions.choices([request(1), other], {}, random.Random(0))]
    told = [len(one.rows) for one in asked if one.weight == functions.TOLD]
    assert told in ([len(NAMES)], [len(NAMES) + functions.MORE_TOOLS])  # by which of the two was drawn
    bound = functions.with_tools(request(1), other, random.Random(0)).tools
    assert sorted(each["function"]["name"] for each in bound) == sorted([*NAMES, *"abcde"[: functions.MORE_TOOLS]])
    assert len(functions.with_tools(request(1), request(2), random.Random(0)).tools) == len(NAMES)


def test_a_request_without_a_choice_is_none() -> None:
    alone = Request("1", "made", request(0).messages, (tool("book_flight"),), request(0).calls)
    assert functions.choice_of(alone) is None
    unknown = Request("1", "made", request(0).messages, request(0).tools, (Call("other", {}),))
    assert functions.choice_of(unknown) is None


def test_the_fit_finds_what_decides() -> None:
    made = list(functions.choices([request(number) for number in range(40)], {}, random.Random(0)))
    weights = functions.fit(made)
    assert functions.accuracy(made, weights) > 0.9
    assert weights[FEATURES.index("name early")] > 0


@pytest.fixture
def command() -> Typer:
    app = Typer()
    app.command()(functions.main)
    return app


def test_the_command_writes_weights_and_what_they_were_fitted_to(command: Typer, tmp_path: Path) -> None:
    asked, held_out, out = tmp_path / "asked.jsonl", tmp_path / "eval.jsonl", tmp_path / "weights.json"
    asked.write_text(lines(*map(request, range(12))))
    held_out.write_text(lines())
    ran = CliRunner().invoke(command, ["--requests", str(asked), "--eval", str(held_out), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    written = json.loads(out.read_text())
    assert tuple(written["weights"]) == FEATURES
    assert list(written["inputs"]) == ["asked.jsonl"]


@pytest.fixture(params=[functions.main, values.main], ids=["functions", "values"])
def either(request: pytest.FixtureRequest) -> Typer:
    """Either of the commands that fit weights to requests."""
    app = Typer()
    app.command()(request.param)
    return app


def test_functions_of_an_evaluation_set_are_refused(either: Typer, tmp_path: Path) -> None:
    asked = tmp_path / "asked.jsonl"
    asked.write_text(lines(request(0)))
    ran = CliRunner().invoke(either, ["--requests", str(asked), "--eval", str(asked), "--out", str(tmp_path / "w")])
    assert ran.exit_code == 1
    assert "book_flight" in ran.output
    assert not (tmp_path / "w").exists()


def test_a_file_without_choices_is_named(either: Typer, tmp_path: Path) -> None:
    asked, held_out = tmp_path / "asked.jsonl", tmp_path / "eval.jsonl"
    asked.write_text(json.dumps({"id": "1", "messages": [], "tools": []}) + "\n")
    held_out.write_text(lines())
    ran = CliRunner().invoke(either, ["--requests", str(asked), "--eval", str(held_out), "--out", str(tmp_path / "w")])
    assert ran.exit_code == 1
    assert "asked.jsonl" in ran.output


def test_the_weights_that_ship_are_of_these_features() -> None:
    shipped = json.loads(functions.WEIGHTS.read_text())
    assert tuple(shipped["weights"]) == FEATURES
    assert all(len(digest) == 64 for digest in shipped["inputs"].values())
