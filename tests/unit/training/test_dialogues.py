"""Longer dialogues made of requests of one turn."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.training.dialogues import AGREED, MAX_TOLD, after, again, asked_for, longer, spoken, told
from ooospec_agents.training.traces import Call, Request

NAMES = ("book_flight", "cancel_order", "translate_text", "play_music")
LOGIN = Call("logIn", {"userName": "jdoe", "pass_word": "hunter2", "attempts": 3, "share": 0.5})
SEEDS = st.integers(0, 10_000)


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


def dialogue(seed: int, call: Call = LOGIN) -> Request:
    """The call's values told, after another request or at once."""
    found = told(call, request(0), request(1), random.Random(seed))
    assert found is not None
    return found


def texts(of: Request) -> str:
    return "\n".join(str(message["content"]) for message in of.messages)


def test_a_value_is_asked_for_and_given() -> None:
    found = asked_for(request(1), random.Random(0))
    assert [message["role"] for message in found.messages] == ["user", "assistant", "user"]
    assert "subject" in found.messages[1]["content"]
    assert "1" in found.messages[2]["content"]


def test_another_request_was_met_before() -> None:
    found = after(request(0), request(1), random.Random(0))
    assert [message["role"] for message in found.messages][:3] == ["user", "assistant", "tool"]
    assert found.messages[1]["tool_calls"][0]["function"]["name"] == "book_flight"
    assert found.messages[-1] == request(1).messages[-1]
    assert found.calls == request(1).calls


def test_functions_of_both_requests_are_bound() -> None:
    other = Request("9", "made", request(1).messages, (tool("other"),), (Call("other", {}),))
    found = after(other, request(1), random.Random(0))
    assert sorted(one["function"]["name"] for one in found.tools) == sorted([*NAMES, "other"])


def test_nothing_is_done_twice_in_a_row() -> None:
    assert after(request(0), request(4), random.Random(0)) == request(4)


def test_the_same_is_wanted_again() -> None:
    found = again(request(1), request(2), random.Random(0))
    assert [message["role"] for message in found.messages][:3] == ["user", "assistant", "tool"]
    assert "2" in found.messages[-1]["content"]
    assert found.calls == request(1).calls


@given(SEEDS)
def test_of_three_longer_dialogues_each_is_of_another_kind(seed: int) -> None:
    made = [longer(at, request(1), request(2), random.Random(seed)) for at in range(3)]
    assert made == [
        after(request(2), request(1), random.Random(seed)),
        asked_for(request(1), random.Random(seed)),
        again(request(1), request(2), random.Random(seed)),
    ]


def test_what_has_no_value_to_ask_for_comes_after_another() -> None:
    empty = Request("9", "made", request(1).messages, request(1).tools, (Call("play_music", {}),))
    made = longer(1, empty, request(2), random.Random(0))
    assert made == after(request(2), empty, random.Random(0))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("userName", "user name"),
        ("user_name", "user name"),
        ("GetInfo", "get info"),
        ("math.add", "math add"),
        ("city", "city"),
    ],
)
def test_a_name_is_said_in_words(name: str, said: str) -> None:
    assert spoken(name) == said


@given(SEEDS)
def test_all_values_of_a_call_are_told(seed: int) -> None:
    found = dialogue(seed)
    assert [value for value in LOGIN.arguments.values() if str(value) not in texts(found)] == []
    assert found.calls == (LOGIN,)


@given(SEEDS)
def test_the_wish_names_the_function_and_the_user_speaks_last(seed: int) -> None:
    found = dialogue(seed)
    assert "log in" in texts(found)
    assert found.messages[-1]["role"] == "user"


@given(SEEDS)
def test_what_is_asked_for_is_answered(seed: int) -> None:
    messages = dialogue(seed).messages
    slots = {spoken(slot): str(value) for slot, value in LOGIN.arguments.items()}
    for question, answer in pairwise(messages):
        wanted = [slots[name] for name in slots if question["role"] == "assistant" and name in question["content"]]
        assert all(value in answer["content"] for value in wanted)
        assert not wanted or answer["role"] == "user"


@given(SEEDS)
def test_what_a_tool_told_has_the_slots_name_as_its_key(seed: int) -> None:
    keys = [f"{quote}{slot}{quote}: " for slot in LOGIN.arguments for quote in "\"'"]
    results = [one["content"] for one in dialogue(seed).messages if one["role"] == "tool"]
    assert all(result == '{"result": "ok"}' or any(key in result for key in keys) for result in results)


@given(SEEDS)
def test_the_functions_of_the_request_stay_bound(seed: int) -> None:
    assert dialogue(seed).tools == request(0).tools


@pytest.mark.parametrize("value", [True, None, "", [1], {"a": 1}, "x" * (MAX_TOLD + 1)])
def test_a_call_without_a_value_to_tell_makes_no_dialogue(value: Any) -> None:
    assert told(Call("f", {"a": value}), request(0), request(1), random.Random(0)) is None


@given(SEEDS)
def test_what_cannot_be_told_is_left_out(seed: int) -> None:
    found = dialogue(seed, Call("f", {"city": "Oslo", "tags": ["zebra"]}))
    assert "zebra" not in texts(found)


def test_a_dialogue_may_end_with_a_confirmation() -> None:
    last = {dialogue(seed).messages[-1]["content"] for seed in range(60)}
    assert last & set(AGREED)


def test_another_request_may_have_been_met_before_a_value_is_told() -> None:
    starts = {dialogue(seed).messages[0]["content"] == "Please cancel order 1" for seed in range(60)}
    assert starts == {True, False}
