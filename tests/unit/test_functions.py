"""Which function is called next, by shared words and by values; the expected figures are worked out by hand."""

from __future__ import annotations

from math import exp, log, sqrt

import pytest

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.drafting.sources.functions import (
    FEATURES,
    LOOKED_AT,
    MOST_SLOTS,
    ONLY,
    WEIGHTS,
    features,
    rank_functions,
)
from ooospec_agents.drafting.sources.shared_words import stem
from ooospec_agents.drafting.sources.span_fit import SpanFit

MAIL = Function("send_mail", "Sends a mail")
WEATHER = Function("get_weather", "Weather of a city", (Slot("city", ("string",), required=True),))
RARE = log(3)
"""Weight of a word that one of two functions has."""


def told(conversation: str, *functions: Function) -> list[dict[str, float]]:
    """The features of each function by their names; of `MAIL` and `WEATHER` where none is given."""
    rows = features(Catalog(functions or (MAIL, WEATHER)), conversation)
    return [dict(zip(FEATURES, row, strict=True)) for row in rows]


def test_words_of_a_later_sentence_weigh_less() -> None:
    mail, weather = told("user: What is the weather? Send no mail.")
    assert mail["name early"] == pytest.approx(0.7)
    assert weather["name early"] == pytest.approx(1.0)
    assert weather["description early"] == pytest.approx(RARE / (4 + sqrt(2)))
    assert mail["description"] == pytest.approx(2 * RARE / (4 + sqrt(2)))


def test_the_last_message_is_told_from_those_before() -> None:
    mail, weather = told("user: Send a mail\nassistant: To whom?\nuser: First the weather, please\nassistant: Well,")
    assert (mail["name early"], mail["name before"]) == (0.0, pytest.approx(1.0))
    assert (weather["name early"], weather["name before"]) == (pytest.approx(1.0), 0.0)
    assert mail["name anywhere"] == pytest.approx(0.6)


def test_the_older_the_message_the_less_it_weighs() -> None:
    mail, _ = told("user: Send a mail\nuser: No\nuser: Or\nuser: Yes")
    assert mail["name before"] == pytest.approx(0.36)


def test_parameters_count() -> None:
    _, weather = told("user: In which city?")
    assert weather["parameters"] == pytest.approx(RARE / 3)


def test_words_of_one_stem_count_where_the_word_itself_is_missing() -> None:
    convert = Function("convert_money", "")
    (row, _) = told("user: A conversion, please", convert, MAIL)
    assert row["stems of the name"] == 0.0  # "convers" is not "convert"
    (row, _) = told("user: Help converting this", convert, MAIL)
    assert row["stems of the name"] == pytest.approx(0.5)


def test_a_short_form_stands_for_the_word() -> None:
    info = Function("city_info", "")
    (row, _) = told("user: information, please", info, MAIL)
    assert row["stems of the name"] == pytest.approx(0.5)
    (row, _) = told("user: infos, please", info, MAIL)  # a letter more is no longer word
    assert row["stems of the name"] == 0.0


@pytest.mark.parametrize(
    ("word", "expected"), [("translation", "transl"), ("booking", "book"), ("use", "use"), ("red", "red")]
)
def test_a_stem_keeps_four_letters_at_least(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_the_first_verb_tells_the_kind_of_deed() -> None:
    mail, weather = told("user: Please send the weather, and show it")
    assert (mail["deed"], weather["deed"]) == (1.0, 0.0)


def test_where_an_answer_has_no_verb_the_wish_before_it_tells() -> None:
    mail, weather = told("user: Please send it\nassistant: Who are you?\nuser: John Doe")
    assert (mail["deed"], weather["deed"]) == (1.0, 0.0)
    mail, weather = told("user: Please send it\nuser: Show it instead")
    assert (mail["deed"], weather["deed"]) == (0.0, 1.0)


def test_a_name_without_a_verb_has_its_descriptions() -> None:
    timer, _ = told("user: Cancel it", Function("timer", "Deletes a timer"), MAIL)
    assert timer["deed"] == 1.0


def test_an_option_that_is_written_counts() -> None:
    paint = Function("paint", slots=(Slot("color", options=("red", "dark blue", "x")),))
    assert told("user: make it DARK BLUE", paint, MAIL)[0]["option"] == 1.0
    assert told("user: x", paint, MAIL)[0]["option"] == 0.0  # too short to tell


def test_a_required_number_that_nobody_wrote_is_missed() -> None:
    add = Function("add", slots=(Slot("a", ("integer",), required=True), Slot("b", ("number",))))
    assert told("user: a sum", add, MAIL)[0]["number missing"] == 1.0
    assert told("user: 4\nuser: and a sum", add, MAIL)[0]["number missing"] == 0.0


def test_what_is_said_of_the_values_counts() -> None:
    conversation = "user: And for Oslo?"
    mail, weather = told(conversation)
    assert (weather["values found"], weather["value said last"]) == SpanFit(conversation).suits(WEATHER)
    assert (mail["values found"], mail["value said last"]) == (0.0, 0.0)
    rows = features(Catalog((MAIL, WEATHER)), conversation)
    scores = [sum(weight * amount for weight, amount in zip(WEIGHTS, row, strict=True)) for row in rows]
    parts = [exp(score) for score in scores]
    ranked = dict(guess[:2] for guess in rank_functions(Catalog((MAIL, WEATHER)), conversation))
    assert ranked == pytest.approx({"send_mail": parts[0] / sum(parts), "get_weather": parts[1] / sum(parts)})


def test_only_for_functions_that_may_come_first_are_values_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def suits(_: SpanFit, function: Function) -> tuple[float, float]:
        asked.append(function.name)
        return 0.0, 0.0

    monkeypatch.setattr(SpanFit, "suits", suits)
    alike = [Function(f"weather_{at}", slots=WEATHER.slots) for at in range(LOOKED_AT + 4)]
    rank_functions(Catalog((*alike, MAIL)), "user: the weather, please")
    assert asked == [function.name for function in alike[:LOOKED_AT]]
    asked.clear()
    large = Function("weather_large", slots=tuple(Slot(f"city_{at}") for at in range(MOST_SLOTS)))
    rank_functions(Catalog((WEATHER, large)), "user: the weather of the city, please")
    assert asked == ["get_weather"]
    asked.clear()
    rank_functions(Catalog((MAIL, WEATHER)), "user: get the weather of the city, the weather")
    assert asked == ["get_weather"]


@pytest.mark.parametrize("conversation", ["", "user: ", "\n\n", "tool: 4", "x" * 9000, "user: \ud800 ☃"])
def test_any_conversation_has_probabilities(conversation: str) -> None:
    ranked = rank_functions(Catalog((MAIL, WEATHER)), conversation)
    assert sum(guess.confidence for guess in ranked) == pytest.approx(1)


def test_an_only_function_is_all_but_certain() -> None:
    assert [guess[:2] for guess in rank_functions(Catalog((MAIL,)), "user: hello")] == [("send_mail", ONLY)]


def test_no_function_is_ranked_where_there_is_none() -> None:
    assert rank_functions(Catalog(), "user: hello") == []
