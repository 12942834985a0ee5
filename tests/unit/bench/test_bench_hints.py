from collections.abc import Callable

import pytest

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.hints import calls_of, degraded_hint, delivery, hint_of, wrong
from ooospec_agents.bench.requests import Answer
from ooospec_agents.hint import Hint, HintError

CALLS = [("get_weather", {"city": "Oslo", "days": 3})]


def values(hint: Hint) -> dict[str, object]:
    return {name: slot.value for name, slot in hint.calls[0].slots.items()}


@pytest.mark.parametrize(
    ("value", "other"),
    [("Oslo", "olsOx"), (3, 10), (True, False), (None, "x"), ([1], [8]), ([], ["x"]), ({"a": "b"}, {"a": "bx"})],
)
def test_a_wrong_value_has_the_type_of_the_right_one(value: object, other: object) -> None:
    assert wrong(value) == other


def test_each_kind_differs_from_the_call_in_one_way(make_item: Callable[..., Item]) -> None:
    item = make_item()
    right = Hint.parse(delivery("right", CALLS, item).with_request)
    assert (right.calls[0].name, values(right)) == ("get_weather", {"city": "Oslo", "days": 3})
    name = Hint.parse(delivery("wrong_name", CALLS, item).with_request)
    assert (name.calls[0].name, values(name)) == ("get_time", {"city": "Oslo", "days": 3})
    value = Hint.parse(delivery("wrong_value", CALLS, item).with_request)
    assert (value.calls[0].name, values(value)) == ("get_weather", {"city": "olsOx", "days": 10})
    assert values(Hint.parse(delivery("half", CALLS, item).with_request)) == {"city": "Oslo"}


def test_a_late_hint_is_the_right_one_and_never_is_none(make_item: Callable[..., Item]) -> None:
    late = delivery("late", CALLS, make_item())
    assert late.posted == hint_of(CALLS).to_json().encode()
    assert (late.with_request, late.tagged, late.after_tokens) == ("", True, 6)
    never = delivery("never", CALLS, make_item())
    assert (never.with_request, never.posted, never.tagged) == ("", None, True)


def test_garbage_is_a_nonsense_hint_and_a_broken_one(make_item: Callable[..., Item]) -> None:
    garbage = delivery("garbage", CALLS, make_item())
    assert Hint.parse(garbage.with_request).calls[0].name not in {"get_weather", "get_time"}
    with pytest.raises(HintError):
        Hint.parse(garbage.posted or b"{}")


def test_an_answer_in_text_becomes_a_hint_of_no_call() -> None:
    assert hint_of([]).no_call == 1.0


def test_of_broken_arguments_the_whole_values_are_kept() -> None:
    answer = Answer(
        calls=[{"name": "a", "arguments": '{"x": 1, "to"}'}, {"name": "b", "arguments": '{"c": 1, "d": "cu'}]
    )
    assert calls_of(answer) == [("a", {"x": 1}), ("b", {"c": 1})]


def test_degraded_is_the_same_each_time_and_right_or_wrong_at_the_ends(make_item: Callable[..., Item]) -> None:
    item = make_item()
    assert degraded_hint(CALLS, item, 0.5, "0") == degraded_hint(CALLS, item, 0.5, "0")
    assert degraded_hint(CALLS, item, 1.0, "0") == hint_of(CALLS)
    assert values(degraded_hint(CALLS, item, 0.0, "0")) == {"city": "olsOx", "days": 10}
