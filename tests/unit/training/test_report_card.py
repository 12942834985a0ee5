"""The report card's figures, worked out by hand."""

from typing import Any

import pytest

from ooospec_agents.hint import Hint
from ooospec_agents.training.card import Outcome, report_card, same
from ooospec_agents.training.traces import Call, Request


def tool(name: str, *slots: str) -> dict[str, Any]:
    properties = {slot: {"type": "string"} for slot in slots}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


TOOLS = (tool("weather", "city", "unit"), tool("time", "zone"))


def outcome(hint: dict[str, Any] | None, tools: tuple[dict[str, Any], ...] = TOOLS, ms: float = 10.0) -> Outcome:
    """The right answer is weather(city="Rome"): one slot of three has a value."""
    request = Request("a", "s", ({"role": "user", "content": "x"},), tools, (Call("weather", {"city": "Rome"}),))
    return Outcome(request, None if hint is None else Hint.model_validate(hint), ms)


def call(name: str, **slots: Any) -> dict[str, Any]:
    values = {
        key: {"absent": True} if value is None else {"value": value, "confidence": 0.95} for key, value in slots.items()
    }
    return {"name": name, "confidence": 0.9, "slots": values}


RIGHT = {"calls": [call("weather", city="Rome", unit=None)], "alternatives": [call("time", zone=None)]}
WRONG_CITY = {"calls": [call("weather", city="Romeo", unit="C")], "alternatives": [call("time", zone=None)]}
WRONG_FUNCTION = {"calls": [call("time", zone="CET")], "alternatives": [call("weather", city="Rome", unit=None)]}


def test_all_right() -> None:
    card = report_card([outcome(RIGHT)])
    keys = ("function_accuracy", "function_accuracy_multi", "slot_exact", "null_exact", "call_exact", "leading")
    assert [card[key] for key in keys] == [1.0] * 6


def test_a_slot_counts_whether_or_not_its_function_was_expected() -> None:
    card = report_card([outcome(WRONG_FUNCTION)])
    assert (card["function_accuracy"], card["slot_exact"], card["call_exact"]) == (0.0, 1.0, 0.0)
    # unit was rightly left out, zone was not.
    assert card["null_exact"] == 0.5


def test_a_wrong_value_has_leading_text_that_is_right() -> None:
    card = report_card([outcome(WRONG_CITY), outcome(RIGHT)])
    assert (card["slot_exact"], card["call_exact"], card["leading"]) == (0.5, 0.5, 1.0)
    # Of two units and two zones, one unit was filled.
    assert card["null_exact"] == 0.75


def test_nothing_at_all_is_wrong_everywhere() -> None:
    card = report_card([outcome(None)])
    assert [card[key] for key in ("function_accuracy", "slot_exact", "null_exact", "call_exact")] == [0.0] * 4


def test_requests_with_one_tool_do_not_count_among_those_with_several() -> None:
    single = {"calls": [call("weather", city="Rome", unit=None)]}
    card = report_card([outcome(single, tools=TOOLS[:1]), outcome(WRONG_FUNCTION)])
    assert (card["function_accuracy"], card["function_accuracy_multi"]) == (0.5, 0.0)


def test_baselines_without_a_model() -> None:
    card = report_card([outcome(WRONG_FUNCTION)])
    assert card["baselines"]["always_null"]["null_exact"] == 1.0
    assert card["baselines"]["always_null"]["slot_exact"] == 0.0
    # One request is its own majority.
    assert card["baselines"]["majority"]["slot_exact"] == 1.0


def test_sure_values_are_counted_apart() -> None:
    card = report_card([outcome(WRONG_CITY), outcome(RIGHT), outcome(None), outcome(None)])
    assert card["calibration"]["sure_share"] == 0.5
    assert card["calibration"]["sure_right"] == 0.5


def test_errors_are_shown_with_the_right_value() -> None:
    assert "said 'Romeo' (0.95), right is 'Rome'" in report_card([outcome(WRONG_CITY)])["worst_errors"][0]


def test_the_median_wave() -> None:
    assert report_card([outcome(RIGHT, ms=1.0), outcome(RIGHT, ms=5.0), outcome(RIGHT, ms=90.0)])["wave_ms_p50"] == 5.0


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        ([1, {"a": "b"}], [1.0, {"a": "b"}], True),
        ([1], [True], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("1", 1, False),
    ],
)
def test_equal_values(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal
