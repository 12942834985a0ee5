"""Fitting the weights by which spans are chosen as values: the choices, the fit, and the command."""

from __future__ import annotations

import json
import random
from collections import Counter
from math import log
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.testing import CliRunner

from ooospec_agents.training import values
from ooospec_agents.training.traces import Call, Request
from ooospec_agents.training.values import MADE, TOLD, TRACED, SlotChoice

CITIES = ("Oslo", "Rome", "Paris", "Lima", "Cairo", "Delhi")
CORE = {
    "none",
    "none: optional",
    "none: unnamed",
    "age",
    "role user",
    "role user last",
    "role assistant",
    "role tool",
    "sentence later",
    "kind proper",
    "kind number",
    "kind quoted",
    "kind date",
    "after from",
    "place: proper",
    "place: after from",
    "integer: number",
    "out of order",
    "name near 1",
    "name near 3",
    "name far 1",
    "name follows",
    "description near",
    "is the name",
    "holds the name",
    "json value",
    "json value of that name",
    "asked for",
    "asked for, all said",
    "sentence names function",
    "is of the function",
    "option said last",
    "option default",
    "True named",
    "False named, denied",
    "percent as share",
    "year 0",
    "items of the type",
    "only item",
    "array: empty",
    "kind default",
    "kind empty, optional",
    "kind placeholder",
}


def tool(name: str, required: tuple[str, ...] = (), /, **slots: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": slots, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": "Books it", "parameters": schema}}


def request(number: int) -> Request:
    """A request with two cities, of which the one after "from" is the value."""
    wanted, other = CITIES[number % len(CITIES)], CITIES[(number + 1) % len(CITIES)]
    return Request(
        id=str(number),
        source="made",
        messages=({"role": "user", "content": f"Please book a ride to {other} from {wanted}, number {number}"},),
        tools=(tool("book_ride", ("start",), start={"type": "string"}),),
        calls=(Call("book_ride", {"start": wanted}),),
    )


def spread() -> Request:
    """A request in which values of all kinds are said in all ways."""
    slots: dict[str, dict[str, Any]] = {
        "origin_city": {"type": "string", "description": "City of departure"},
        "target_city": {"type": "string", "description": "City of arrival"},
        "date": {"type": "string", "description": "YYYY-MM-DD"},
        "user_id": {"type": "string"},
        "seats": {"type": "integer", "default": 1},
        "bags": {"type": "integer"},
        "discount": {"type": "number"},
        "class": {"type": "string", "enum": ["economy", "business"], "default": "economy"},
        "refundable": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "name": {"type": "string"},
    }
    content = (
        "Please book ride. The departure is from Oslo, target city Rome, on May 3rd, 2024 or 2024-05-04, 4 seats and 2 bags. "
        "Business class, not refundable, a discount of 3.5%, tags 'new' and 'old', named Ann Lee, the date and Paris city."
    )
    messages = (
        {"role": "system", "content": "Be kind"},
        {"role": "user", "content": "I am Bob Ray"},
        {"role": "tool", "content": '{"user_id": "ab-17", "bags": 3}'},
        {"role": "assistant", "content": "Hello Bob Ray. What is the origin city?"},
        {"role": "user", "content": "It is Lima"},
        {"role": "assistant", "content": "Fine, from Lima. And what else?"},
        {"role": "user", "content": content},
    )
    bound = (tool("book_ride", ("origin_city",), **slots),)
    return Request("0", "made", messages, bound, (Call("book_ride", {"target_city": "Rome"}),))


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


def alone(weight: float, right: int = 0) -> list[SlotChoice]:
    """One choice between a candidate and none; by default the candidate is right."""
    return [SlotChoice([[("said", 1.0)], []], frozenset({right}), weight)]


def test_a_slot_is_a_choice_among_its_candidates_or_none() -> None:
    (choice,) = values.choices_of(request(0))
    (right,) = choice.right
    found = {name for name, _ in choice.rows[right]}
    assert {"kind proper", "after from"} <= found
    assert "none" in {name for name, _ in choice.rows[-1]}


def test_where_no_candidate_is_right_none_is() -> None:
    unsaid = Request("0", "made", request(0).messages, request(0).tools, (Call("book_ride", {"start": "Quito"}),))
    left_out = Request("0", "made", request(0).messages, request(0).tools, (Call("book_ride", {}),))
    for one in (unsaid, left_out):
        (choice,) = values.choices_of(one)
        assert choice.right == {len(choice.rows) - 1}


def test_a_call_of_nothing_bound_is_no_choice() -> None:
    unknown = Request("0", "made", request(0).messages, request(0).tools, (Call("other", {"start": "Oslo"}),))
    assert list(values.choices_of(unknown)) == []
    assert list(values.choices_of(Request("0", "made", (), ()))) == []


def test_what_a_target_called_counts_for_more_than_the_reference() -> None:
    called = {"0": (Call("book_ride", {"start": "Rome"}),)}
    traced, *_ = values.choices([request(0)], called, random.Random(0))
    given, *_ = values.choices([request(0)], {}, random.Random(0))
    assert (traced.weight, given.weight) == (TRACED, 1.0)
    assert traced.right != given.right


def test_dialogues_are_told_of_every_second_request_and_longer_of_two_in_three() -> None:
    made = values.choices([request(number) for number in range(6)], {}, random.Random(0))
    assert Counter(choice.weight for choice in made) == {1.0: 6, TOLD: 3, MADE: 4}


def test_a_request_without_an_answer_is_passed_over() -> None:
    unknown = Request("0", "made", request(0).messages, request(0).tools)
    assert list(values.choices([unknown], {}, random.Random(0))) == []


def test_the_fit_weighs_what_is_right_against_the_squared_weights() -> None:
    # With the weight log 3 it is right in three of four cases: the slope 8 log 3 / 4 is that of the square, 2 log 3.
    assert values.fit(alone(8 * log(3)), rarest=1) == {"said": pytest.approx(log(3), abs=1e-4)}


def test_what_is_wrong_is_weighed_against() -> None:
    wrong = alone(8 * log(3), right=1)
    assert values.fit(wrong, rarest=1) == {"said": pytest.approx(-log(3), abs=1e-4)}


def test_candidates_that_are_right_share_what_is_right() -> None:
    both = [SlotChoice([[("said", 1.0)], [("said", 1.0)], []], frozenset({0, 1}), 8 * log(1.5))]
    assert values.fit(both, rarest=1) == {"said": pytest.approx(log(1.5), abs=1e-4)}


def test_a_rare_feature_has_no_weight() -> None:
    rare = SlotChoice([[("said", 1.0), ("rare", 1.0)], []], frozenset({0}))
    assert set(values.fit([*alone(1.0), *alone(1.0), rare], rarest=2)) == {"said"}


def test_the_fit_finds_what_decides() -> None:
    weights = values.fit(list(values.choices([request(number) for number in range(30)], {}, random.Random(0))))
    assert weights["after from"] > 0 > weights["after to"]


def test_values_that_are_guessed_first_are_counted() -> None:
    properties = {"email": {"type": "string"}, "seats": {"type": "integer"}, "tags": {"type": "array"}}
    said = ({"role": "user", "content": "Book 4 seats for ann@example.org"},)
    bound = (tool("book_ride", ("email", "seats"), **properties),)
    right = Call("book_ride", {"email": "ann@example.org", "seats": 4})
    wrong = Call("book_ride", {"email": "ann@example.org", "seats": 5, "tags": None})
    asked = [Request("0", "made", said, bound, (call,)) for call in (right, wrong, Call("other", {}))]
    assert values.accuracy(asked) == (3, 4)


@pytest.fixture
def command() -> Typer:
    app = Typer()
    app.command()(values.main)
    return app


def test_the_command_writes_weights_and_what_they_were_fitted_to(command: Typer, tmp_path: Path) -> None:
    asked, held_out, out = tmp_path / "asked.jsonl", tmp_path / "eval.jsonl", tmp_path / "weights.json"
    traces = tmp_path / "traces.jsonl"
    asked.write_text(lines(*map(request, range(12))))
    held_out.write_text(lines())
    traces.write_text('{"id": "0", "calls": [{"name": "book_ride", "arguments": {}}], "finish": "tool_calls"}\n')
    ran = CliRunner().invoke(
        command,
        ["--requests", str(asked), "--eval", str(held_out), "--traces", str(traces), "--out", str(out)],
    )
    assert ran.exit_code == 0, ran.output
    written = json.loads(out.read_text())
    assert written["slots"] == 12 + 5 + 8  # of the first, called without a value, none is told
    assert {"none", "kind proper"} <= set(written["weights"])
    assert list(written["inputs"]) == ["asked.jsonl", "traces.jsonl"]


def test_the_weights_that_ship_name_what_they_were_fitted_to() -> None:
    shipped = json.loads(values.WEIGHTS.read_text())
    assert [len(digest) for digest in shipped["inputs"].values()] == [64, 64]


def test_the_weights_that_ship_are_of_features_that_are_still_found() -> None:
    shipped = set(json.loads(values.WEIGHTS.read_text())["weights"])
    found = {name for choice in values.choices_of(spread()) for row in choice.rows for name, _ in row}
    assert CORE - shipped == set()
    assert CORE - found == set()
