"""Fitting the weights by which a sidecar's answers and lexical guesses are joined."""

from __future__ import annotations

from typing import Any

from ooospec_agents.hint import CallHint, Hint, SlotHint
from ooospec_agents.sidecar.slots import FEATURES
from ooospec_agents.training.card import Outcome
from ooospec_agents.training.joining import choices_of, weights_of
from ooospec_agents.training.traces import Call, Request


def asked(value: str, said: str, confidence: float) -> Outcome:
    """A request for a city that is named, and what the sidecar said of it."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool: dict[str, Any] = {"type": "function", "function": {"name": "visit", "parameters": schema}}
    message = {"role": "user", "content": "Plan it from Oslo to Rome"}
    request = Request("1", "made", (message,), (tool,), (Call("visit", {"city": value}),))
    slots = {"city": SlotHint(value=said, confidence=confidence)}
    return Outcome(request, Hint(calls=(CallHint(name="visit", confidence=1.0, slots=slots),)))


def test_of_the_values_the_right_one_is_chosen() -> None:
    (choice,) = choices_of(asked("Bern", "Bern", 0.5))  # not in the conversation: the last before none
    assert choice.right == {len(choice.rows) - 2}
    assert dict(choice.rows[-2])["said alone"] == 1.0


def test_where_neither_is_right_none_is() -> None:
    (choice,) = choices_of(asked("Lima", "Bern", 0.5))
    assert choice.right == {len(choice.rows) - 1}


def test_a_request_without_a_bound_call_teaches_nothing() -> None:
    outcome = asked("Oslo", "Oslo", 0.5)
    unknown = Request("1", "made", outcome.request.messages, outcome.request.tools, (Call("other", {}),))
    assert list(choices_of(Outcome(unknown, outcome.hint))) == []


def test_who_is_right_when_sure_is_trusted_when_sure() -> None:
    right, wrong = asked("Bern", "Bern", 0.95), asked("Oslo", "Bern", 0.2)
    weights, slots = weights_of([right, wrong] * 10)
    assert slots == 20
    assert tuple(weights) == FEATURES
    assert weights["said, sure"] > 0


def test_of_no_answers_all_weights_are_zero() -> None:
    assert weights_of([]) == (dict.fromkeys(FEATURES, 0.0), 0)
