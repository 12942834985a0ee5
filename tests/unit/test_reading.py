"""A conversation read for values: what stands around each."""

from __future__ import annotations

import pytest

from ooospec_agents.drafting.sources.phrases import WHOLE
from ooospec_agents.drafting.sources.reading import MAX_PHRASES, MAX_SPANS, MAX_TEXT, Place, Reading, is_phrase


def place(conversation: str, text: str, *kinds: str) -> Place:
    """Where a text stands that is a value by itself; of several the first."""
    found = Reading(conversation).places
    return next(one for one in found if one.span.text == text and (not kinds or one.span.kind in kinds))


def test_the_older_a_message_the_more_of_the_users_follow() -> None:
    said = "system: Be kind to Cy Fox\nuser: Now call Ann Lee\nassistant: or Bob Ray?\nuser: No, call Eve Poe"
    found = [place(said, name) for name in ("Cy Fox", "Ann Lee", "Bob Ray", "Eve Poe")]
    assert [(one.role, one.turn, one.age) for one in found] == [
        ("other", 0, 2),
        ("user", 1, 1),
        ("assistant", 2, 1),
        ("user", 3, 0),
    ]


def test_spans_of_a_kind_are_counted_in_their_message() -> None:
    said = "user: add 4 to 5\nassistant: 9\nuser: for Ann and 7"
    assert [place(said, text).rank for text in ("4", "5", "9", "7", "Ann")] == [0, 1, 0, 0, 0]


def test_a_sentence_is_counted_in_its_message() -> None:
    found = place("user: Well. Hello there, add 4 now", "4")
    assert (found.sentence, found.said) == (1, frozenset(("hello", "there", "add", "4", "now")))


def test_words_around_a_value_stand_in_its_sentence_the_nearest_first() -> None:
    said = "user: Some rooms. The height is 180 and the weight 75 kilos"
    height, weight = place(said, "180"), place(said, "75")
    assert (height.before, height.near, height.after) == (("height",), 1, ("weight", "75"))
    assert (weight.before, weight.near, weight.after) == (("weight", "180", "height"), 1, ("kilo",))


def test_words_of_the_next_line_do_not_follow() -> None:
    assert place("user: it is 75\nkilos", "75").after == ()


@pytest.mark.parametrize(
    ("said", "text", "preposition"),
    [
        ("fly from Oslo", "Oslo", "from"),
        ("fly to the Hague", "Hague", "to"),
        ('a song called "So What"', "So What", "called"),
        ("the id: 17", "17", "id"),
        ("fly Oslo", "Oslo", ""),
        ("17", "17", "start"),
    ],
)
def test_the_word_just_before_a_value_is_kept(said: str, text: str, preposition: str) -> None:
    assert place(f"user: {said}", text).preposition == preposition


def test_a_json_value_has_a_key() -> None:
    said = 'tool: {"city": "Oslo", \'rooms\': 4}'
    assert [place(said, text, "quoted", "number").key for text in ("city", "Oslo", "4")] == ["", "city", "rooms"]


@pytest.mark.parametrize(
    ("said", "text", "kind", "flags"),
    [
        ("ask the NASA now", "NASA", "proper", ("acronym",)),
        ('play "blue" now', "blue", "quoted", ("quoted lower",)),
        ('play "Blue" now', "Blue", "quoted", ()),
        ('it has "City": 4', "City", "quoted", ("json key",)),
        ("on May 3 now", "May", "proper", ("inside moment",)),
        ("on May 3 now", "May 3", "day as said", ()),
        ('so {"a": 4}', '{"a": 4}', "object", ("json",)),
    ],
)
def test_what_else_may_be_seen_of_a_value(said: str, text: str, kind: str, flags: tuple[str, ...]) -> None:
    assert place(f"user: {said}", text, kind).flags == flags


def test_an_answer_is_told_with_what_was_asked_last() -> None:
    said = "assistant: Hello Ann. Fine. What is the name?\nuser: Bo\ntool: Which one?\nuser: Cy"
    assert Reading(said).asked == {1: (frozenset(("fine", "name")), 3)}


def test_clock_times_are_written_one_way() -> None:
    assert [clock for _, clock in Reading("user: 7pm, 9:05, or 9:05:30 on May 3").clocks] == ["19:00", "09:05"]


@pytest.mark.parametrize("piece", ["[", "(1, ", "1+", "1 ", "a_", "A. ", "A and ", "is a ", "May 1 ", "a@b.", '"a": '])
def test_of_a_long_text_only_the_end_is_read_and_of_many_values_a_few(piece: str) -> None:
    reading = Reading("user: " + piece * MAX_TEXT)
    kinds = [place.span.kind for place in reading.places]
    assert reading.text == (piece * MAX_TEXT)[-MAX_TEXT:]
    assert sum(map(is_phrase, kinds)) <= MAX_PHRASES
    assert len([kind for kind in kinds if not (is_phrase(kind) or kind in WHOLE or "list" in kind)]) <= MAX_SPANS
