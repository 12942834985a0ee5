"""Hints of several predictors become one."""

from ooospec_agents.hint import CallHint, Hint, SlotHint
from ooospec_agents.predictor.merge import merge


def hint(name: str, sure: float, source: str = "span", **slots: SlotHint) -> Hint:
    return Hint(calls=(CallHint(name=name, confidence=sure, slots=slots),), source=source)


def test_one_hint_is_itself_and_none_is_none() -> None:
    only = hint("f", 0.5)
    assert merge([only]) is only
    assert merge([]) is None


def test_each_slot_comes_from_whoever_is_more_certain() -> None:
    first = hint("f", 0.9, a=SlotHint(value=1, confidence=0.9), b=SlotHint(value=2, confidence=0.2))
    second = hint("f", 0.8, "sidecar", a=SlotHint(value=3, confidence=0.3), b=SlotHint(value=4, confidence=0.7))
    merged = merge([first, second])
    assert merged is not None
    assert {name: slot.value for name, slot in merged.calls[0].slots.items()} == {"a": 1, "b": 4}
    assert merged.source == "span+sidecar"


def test_a_slot_that_only_one_names_is_kept() -> None:
    merged = merge([hint("f", 0.9), hint("f", 0.8, a=SlotHint(value=1, confidence=0.1))])
    assert merged is not None
    assert merged.calls[0].slots["a"].value == 1


def test_the_surer_function_leads_and_the_other_stays_an_alternative() -> None:
    merged = merge([hint("f", 0.4), hint("g", 0.8, "sidecar")])
    assert merged is not None
    assert [call.name for call in merged.calls] == ["g"]
    assert [call.name for call in merged.alternatives] == ["f"]


def test_an_alternatives_slots_help_a_call_of_that_name() -> None:
    other = CallHint(name="f", confidence=0.1, slots={"a": SlotHint(value=5, confidence=0.6)})
    second = Hint(calls=(CallHint(name="g", confidence=0.5),), alternatives=(other,))
    merged = merge([hint("f", 0.9), second])
    assert merged is not None
    assert merged.calls[0].slots["a"].value == 5


def test_no_call_is_believed_where_it_is_surer() -> None:
    nothing = Hint(no_call=0.9)
    merged = merge([hint("f", 0.4), nothing])
    assert merged is not None
    assert merged.calls == ()
    assert merged.no_call == 0.9
    still = merge([hint("f", 0.95), nothing])
    assert still is not None
    assert [call.name for call in still.calls] == ["f"]
