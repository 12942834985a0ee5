"""A wave's answers become one hint; the expected values follow from the given probabilities by hand."""

from __future__ import annotations

import math

import pytest

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.hint import CallHint, Hint, SlotHint
from ooospec_agents.sidecar.backend import Completion
from ooospec_agents.sidecar.join import Choice, join, read_choice, weighed

CITY, DAYS = Slot("city", ("string",)), Slot("days", ("integer",))
CATALOG = Catalog((Function("weather", slots=(CITY, DAYS)), Function("stop"), Function("mail", slots=(CITY,))))


def completion(text: str, *tokens: tuple[str, float], **others: float) -> Completion:
    """Tokens with their probabilities; `others` stand beside the first token, "_" for a space."""
    logs = [math.log(p) for _, p in tokens]
    top = [{token: log} for (token, _), log in zip(tokens, logs, strict=True)]
    if top:
        top[0] |= {token.replace("_", " "): math.log(p) for token, p in others.items()}
    return Completion(text, tuple(logs), tuple(token for token, _ in tokens), tuple(top))


def test_probability_of_the_given_answer_includes_its_end() -> None:
    choice = read_choice(completion(" 1", (" ", 0.5), ("1", 0.8), ("\n", 0.5)), range(3))
    assert choice.functions == pytest.approx({0: 0.0, 1: 0.2, 2: 0.0})


def test_probability_of_what_stands_beside_it() -> None:
    answer = completion(" 1", (" 1", 0.6), ("\n", 1.0), _0=0.3, _none=0.05)
    choice = read_choice(answer, range(3))
    assert choice.functions == pytest.approx({0: 0.3, 1: 0.6, 2: 0.0})
    assert choice.no_call == pytest.approx(0.05)


def test_one_is_not_twelve() -> None:
    choice = read_choice(completion(" 12", (" ", 1.0), ("1", 1.0), ("2", 0.75)), range(13))
    assert choice.functions[1] == pytest.approx(0.25)
    assert choice.functions[12] == pytest.approx(0.75)
    assert choice.functions[2] == 0.0


def test_where_a_call_is_required_the_functions_share_what_no_call_had() -> None:
    said = read_choice(completion(" none", (" none", 0.9), _0=0.1), range(3))
    assert said.no_call == pytest.approx(0.9)
    choice = weighed(said, {0: 0.2, 1: 0.4, 2: 0.4}, no_call_allowed=False)
    assert choice.no_call == 0.0
    assert choice.functions[0] / choice.functions[1] == pytest.approx(10**0.3 / 2)
    assert sum(choice.functions.values()) == pytest.approx(1.0)


def test_without_probabilities_the_text_decides() -> None:
    choice = read_choice(Completion(" 2"), range(3))
    assert choice.functions == {0: 0.0, 1: 0.0, 2: 0.5}


def test_hint_has_the_best_call_and_alternatives() -> None:
    answers = {
        (0, "city"): completion(" Oslo", (" Os", 0.5), ("lo", 0.5)),
        (0, "days"): completion(" many", (" many", 0.9)),
        (2, "city"): completion(" null", (" null", 0.8)),
    }
    hint = join(CATALOG, Choice({0: 0.3, 1: 0.6, 2: 0.0}, 0.1), answers)
    weather = CallHint(name="weather", confidence=0.3, slots={"city": SlotHint(value="Oslo", confidence=0.25)})
    mail = CallHint(name="mail", confidence=0.0, slots={"city": SlotHint(absent=True, confidence=0.8)})
    expected = Hint(
        calls=(CallHint(name="stop", confidence=0.6),), alternatives=(weather, mail), no_call=0.1, source="sidecar"
    )
    assert hint == expected


def test_where_no_call_is_likelier_none_is_expected() -> None:
    hint = join(CATALOG, Choice({0: 0.2, 1: 0.0, 2: 0.0}, 0.7), {})
    assert hint == Hint(alternatives=(CallHint(name="weather", confidence=0.2),), no_call=0.7, source="sidecar")


def test_garbage_for_the_function_leaves_alternatives() -> None:
    answers = {(0, "days"): Completion(" 3")}
    hint = join(CATALOG, Choice({0: 0.0, 1: 0.0, 2: 0.0}), answers)
    assert hint.calls == ()
    assert [call.name for call in hint.alternatives] == ["weather"]


def test_answer_that_was_cut_off_counts_half() -> None:
    answer = Completion(" so long", (0.0,) * 32)
    hint = join(CATALOG, Choice({0: 1.0}), {(0, "city"): answer})
    assert hint.calls[0].slots["city"].confidence == 0.5


def test_functions_are_ranked() -> None:
    assert Choice({0: 0.05, 1: 0.6, 2: 0.3}).ranked() == [1, 2, 0]
    assert Choice().ranked() == []


UNIT = Slot("unit", ("string",), options=("celsius", "fahrenheit", "fahrenheit scale"))


def option_of(answer: Completion, slot: Slot = UNIT) -> tuple[object, float] | None:
    """The option and its confidence; "absent" for none of them."""
    catalog = Catalog((Function("weather", slots=(slot,)),))
    found = join(catalog, Choice({0: 1.0}), {(0, slot.name): answer}).calls[0].slots.get(slot.name)
    return found and ("absent" if found.absent else found.value, round(found.confidence, 6))


def test_options_are_scored_whatever_was_written() -> None:
    written = completion(" degrees", (" degrees", 0.5), ("\n", 1.0), _celsius=0.3, _null=0.1)
    assert option_of(written) == ("celsius", 0.3)


def test_no_option_may_be_the_likeliest() -> None:
    written = completion(" degrees", (" degrees", 0.5), ("\n", 1.0), _celsius=0.1, _null=0.3)
    assert option_of(written) == ("absent", 0.3)


def test_an_option_that_another_begins_with_gets_what_the_other_leaves() -> None:
    written = completion(" fahrenheit scale", (" fahrenheit", 0.8), (" scale", 0.75), ("\n", 1.0))
    assert option_of(written) == ("fahrenheit scale", 0.6)


def test_an_option_in_words_of_its_own_counts() -> None:
    written = completion(" Celsius", (" Celsius", 0.7), ("\n", 1.0), _fahrenheit=0.2)
    assert option_of(written) == ("celsius", 0.7)


def test_a_boolean_is_scored_too() -> None:
    written = completion(" maybe", (" maybe", 0.4), ("\n", 1.0), _false=0.35)
    assert option_of(written, Slot("daily", ("boolean",))) == (False, 0.35)


def test_an_option_that_nobody_thinks_of_is_no_answer() -> None:
    assert option_of(completion(" degrees", (" degrees", 0.9), ("\n", 1.0))) is None


def test_an_option_that_is_no_string_is_scored_as_it_is_written() -> None:
    written = completion(" several", (" several", 0.5), ("\n", 1.0), _3=0.25)
    assert option_of(written, Slot("days", ("integer",), options=(1, 3, 7))) == (3, 0.25)


def test_shared_words_weigh_more_than_the_sidecar() -> None:
    choice = weighed(Choice({0: 0.6, 1: 0.3}, no_call=0.1), {0: 0.5, 1: 0.5}, no_call_allowed=True)
    assert choice.functions[0] / choice.functions[1] == pytest.approx(2**0.3)
    assert sum(choice.functions.values()) == pytest.approx(0.9)
    assert choice.no_call == 0.1


def test_an_answer_that_names_nothing_chooses_nothing() -> None:
    silent = Choice({0: 0.0, 1: 0.0})
    assert weighed(silent, {0: 0.25, 1: 0.75}, no_call_allowed=True) is silent
