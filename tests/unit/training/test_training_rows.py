"""Rows of a request, and where their tokens stand."""

import random
from typing import Any

from ooospec_agents.training.layout import lay_out
from ooospec_agents.training.rows import Example, Row, build, without_call
from ooospec_agents.training.traces import Call, Request

RNG = random.Random(0)


def tool(name: str, *slots: str) -> dict[str, Any]:
    properties = {slot: {"type": "string"} for slot in slots}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


def asked(*calls: Call, tools: tuple[dict[str, Any], ...]) -> Request:
    return Request("a", "s", ({"role": "user", "content": "Weather in Rome"},), tools, calls)


WEATHER, TIME = tool("weather", "city", "unit"), tool("time", "zone")
REQUEST = asked(Call("weather", {"city": "Rome"}), tools=(WEATHER, TIME))


def answers(request: Request, **options: Any) -> dict[str, list[str]]:
    example = build(request, random.Random(0), **options)
    assert example is not None
    kinds: dict[str, list[str]] = {"function": [], "value": [], "null": []}
    for row in example.rows:
        kinds[row.kind].append(row.answer)
    return kinds


def test_each_kind_of_row_is_there() -> None:
    assert answers(REQUEST) == {"function": [" 0\n"], "value": [" Rome\n"], "null": [" null\n"] * 2}


def test_nulls_are_drawn_down_to_their_limit() -> None:
    assert answers(REQUEST, max_nulls=1)["null"] == [" null\n"]


def test_a_reference_says_nothing_of_slots_that_it_leaves_out() -> None:
    # "unit" is left out by the reference; "zone" belongs to a function that is not called.
    example = build(REQUEST, RNG, habits=False)
    assert example is not None
    assert ["zone" in row.question for row in example.rows if row.kind == "null"] == [True]


def test_one_bound_function_that_is_called_is_not_asked_for() -> None:
    assert answers(asked(Call("weather", {"city": "Rome"}), tools=(WEATHER,)))["function"] == []


def test_the_first_of_several_calls_counts() -> None:
    request = asked(Call("time", {"zone": "CET"}), Call("weather", {"city": "Rome"}), tools=(WEATHER, TIME))
    rows = answers(request)
    assert (rows["function"], rows["value"]) == ([" 1\n"], [" CET\n"])


def test_no_call_is_answered_by_none() -> None:
    taken = without_call(REQUEST)
    assert taken is not None
    assert answers(taken) == {"function": [" none\n"], "value": [], "null": [" null\n"]}


def test_no_call_needs_a_tool_that_remains() -> None:
    assert without_call(asked(Call("weather", {}), tools=(WEATHER,))) is None


def test_a_call_of_an_unbound_function_teaches_nothing() -> None:
    assert build(asked(Call("other", {}), tools=(WEATHER,)), RNG) is None


def test_every_question_goes_on_where_the_shared_tokens_end() -> None:
    rows = (Row("pq", "r\n", "value"), Row("s", "t\n", "null"))
    part = lay_out(Example("a", "xyz", rows), lambda text: [ord(letter) for letter in text])
    assert "".join(map(chr, part.ids)) == "xyz" + "pqr" + "st"
    assert part.positions == [0, 1, 2, 3, 4, 5, 3, 4]
    assert part.segments == [0, 0, 0, 1, 1, 1, 2, 2]
    # Each answer's letter, at the index before it, with its row's weight.
    assert part.targets == [(4, ord("r"), 1.0), (5, 10, 1.0), (6, ord("t"), 0.25), (7, 10, 0.25)]
