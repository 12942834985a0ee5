"""From the encoder's probabilities to a value."""

from typing import Any

import pytest

from ooospec_agents.catalog import Slot
from ooospec_agents.predictor.decode import Found, Scores, candidates, likely_starts, mix
from ooospec_agents.predictor.pieces import Piece

STRING = Slot("city", ("string",))


def piece(text: str, **options: Any) -> Piece:
    """A text of one token a word; options by the word that names them."""
    spans, at, words = [], 0, text.split(" ")
    for word in words:
        spans.append((at, at + len(word)))
        at += len(word) + 1
    known = tuple((option, words.index(word), words.index(word)) for word, option in options.items())
    return Piece(text, tuple(range(len(words))), tuple(spans), known)


def best_value(said: Scores, slot: Slot, conversation: Piece, text: Piece) -> Found:
    return mix(candidates(said, slot, conversation, text), (), 0.0)


TALK = piece("from Rome to New York or Rome")
TEXT = piece("city of trip default Oslo")


def scores(starts: dict[int, float], ends: dict[int, float], length: int = 12) -> Scores:
    return Scores(
        (0.1, 0.8, 0.1),
        [starts.get(index, 0.0) for index in range(length)],
        {start: [ends.get(index, 0.0) for index in range(length)] for start in starts},
    )


def test_the_likeliest_span_is_the_value() -> None:
    found = best_value(scores({3: 0.9, 1: 0.1}, {4: 0.8, 1: 0.2}), STRING, TALK, TEXT)
    assert found.value == "New York"
    assert found.probability == pytest.approx(0.72)


def test_places_of_the_same_value_count_together() -> None:
    found = best_value(scores({1: 0.3, 6: 0.3, 3: 0.4}, {1: 0.5, 6: 0.5, 4: 0.5}), STRING, TALK, TEXT)
    assert found.value == "Rome"
    assert found.probability == pytest.approx(0.3)


def test_a_span_may_lie_in_the_slots_own_text() -> None:
    assert best_value(scores({11: 1.0}, {11: 1.0}), STRING, TALK, TEXT).value == "Oslo"


def test_no_span_crosses_from_the_conversation_into_the_text() -> None:
    found = best_value(scores({6: 0.9, 3: 0.1}, {11: 0.9, 4: 0.1}), STRING, TALK, TEXT)
    assert found.value == "New York"


def test_what_cannot_be_read_as_the_slots_type_is_passed_over() -> None:
    talk = piece("Rome for 3 days")
    found = best_value(scores({0: 0.9, 2: 0.1}, {0: 0.9, 2: 0.1}, 9), Slot("days", ("integer",)), talk, TEXT)
    assert found.value == 3


def test_an_options_slot_has_only_options() -> None:
    slot = Slot("unit", ("string",), options=("C", "F"))
    text = piece("unit C F", C="C", F="F")
    talk = piece("warm in f please")
    pointed = best_value(scores({6: 0.9, 0: 0.1}, {6: 0.9, 0: 0.1}, 7), slot, talk, text)
    assert pointed.value == "F"
    said = best_value(scores({2: 0.9, 0: 0.1}, {2: 0.9, 0: 0.1}, 7), slot, talk, text)
    assert said.value == "F"
    assert best_value(scores({0: 1.0}, {0: 1.0}, 7), slot, talk, text).probability == 0.0


def test_a_list_gathers_its_elements_in_order() -> None:
    slot = Slot("cities", ("array",), schema={"items": {"type": "string"}})
    found = best_value(scores({3: 0.5, 1: 0.45}, {4: 0.5, 1: 0.5}), slot, TALK, TEXT)
    assert found.value == ["Rome", "New York"]
    one = best_value(scores({3: 0.95, 1: 0.05}, {4: 0.95, 1: 0.05}), slot, TALK, TEXT)
    assert one.value == ["New York"]


def test_a_list_written_out_is_read_whole() -> None:
    slot = Slot("numbers", ("array",), schema={"items": {"type": "integer"}})
    talk = piece("sum [1,2] now")
    assert best_value(scores({1: 1.0}, {1: 1.0}, 8), slot, talk, TEXT).value == [1, 2]


def test_a_spans_end_belongs_to_its_start() -> None:
    ends = {1: [float(index == 1) for index in range(12)], 3: [float(index == 4) for index in range(12)]}
    said = Scores((0.0, 1.0, 0.0), [0.0, 0.4, 0.0, 0.6, *[0.0] * 8], ends)
    assert best_value(said, STRING, TALK, TEXT).value == "New York"


def test_ends_are_wanted_for_the_likeliest_starts_and_all_options() -> None:
    text = piece("unit C F", C="C", F="F")
    start = [0.5, 0.3, *[0.0] * 6, 0.2, 0.0]
    assert likely_starts(start, TALK, text)[:3] == [0, 1, 8]
    assert set(likely_starts(start, TALK, text)) >= {8, 9}


def test_nothing_readable_is_no_value() -> None:
    found = best_value(scores({0: 1.0}, {0: 1.0}), Slot("days", ("integer",)), TALK, TEXT)
    assert (found.value, found.probability) == (None, 0.0)


def test_guesses_count_by_their_weight() -> None:
    pointed, guessed = [Found("Rome", 0.5), Found("Oslo", 0.3)], [Found("Oslo", 0.4), Found("Bonn", 0.9)]
    assert mix(pointed, guessed, 0.0) == Found("Rome", 0.5)
    assert mix(pointed, guessed, 0.5).value == "Rome"
    both = mix(pointed, guessed[:1], 1.0)
    assert (both.value, both.probability) == ("Oslo", pytest.approx(0.35))
    assert mix((), (), 1.0) == Found(None, 0.0)
