"""What a conversation's text is taken apart into: messages, sentences, and stretches that look like values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.drafting.sources.codes import codes_for
from ooospec_agents.drafting.sources.dates import Day
from ooospec_agents.drafting.sources.lists import MAX_FOUND, find_lists
from ooospec_agents.drafting.sources.reading import Reading
from ooospec_agents.drafting.sources.spans import Covered, find_spans
from ooospec_agents.drafting.sources.turns import Turn, sentences, turns


def told(conversation: str) -> list[tuple[str, str]]:
    """Who says what."""
    return [(turn.role, conversation[turn.start : turn.end].strip()) for turn in turns(conversation)]


def texts(text: str, kind: str) -> list[str]:
    """The spans of a kind, in the order of the text."""
    found, _ = find_spans(text)
    return [span.text for span in sorted(found, key=lambda span: span.start) if span.kind == kind]


def read(conversation: str, kind: str) -> list[str]:
    """The spans of a kind, phrases and answers too."""
    return [place.span.text for place in Reading(conversation).places if place.span.kind == kind]


def lists(text: str, *kinds: str) -> list[Any]:
    """The lists and objects of these kinds; of all where none is named."""
    found, _ = find_spans(text)
    return [span.value for span in find_lists(text, found) if not kinds or span.kind in kinds]


def test_a_text_is_split_into_its_messages() -> None:
    assert turns("user: Hi\nassistant: Where to?\nuser: Oslo") == [
        Turn("user", 6, 9),
        Turn("assistant", 20, 30),
        Turn("user", 36, 40),
    ]


@pytest.mark.parametrize(
    ("conversation", "said"),
    [
        ("to Oslo\nassistant: When?", [("user", "to Oslo"), ("assistant", "When?")]),
        ("user: I am the user: root", [("user", "I am the user: root")]),
        ("user: Hi\nand bye", [("user", "Hi\nand bye")]),
        ("system: Be kind\ntool: {}", [("system", "Be kind"), ("tool", "{}")]),
        ("", [("user", "")]),
    ],
    ids=["its beginning was cut off", "a role within a line", "two lines", "other roles", "nothing"],
)
def test_a_message_begins_with_its_role(conversation: str, said: list[tuple[str, str]]) -> None:
    assert told(conversation) == said


def test_a_sentence_ends_with_its_line_or_its_mark() -> None:
    text = "It is 3.5 km. Go!\nNow"
    assert [text[start:end] for start, end in sentences(text, 0, len(text))] == ["It is 3.5 km.", "Go!", "Now"]


@given(st.text(st.sampled_from("ab.!? \n") | st.characters()), st.integers(0, 9), st.integers(0, 99))
def test_sentences_stay_in_their_stretch_and_in_order(text: str, start: int, end: int) -> None:
    start, end = min(start, len(text)), min(max(start, end), len(text))
    places = [place for sentence in sentences(text, start, max(start, end)) for place in sentence]
    assert [start, *places, max(start, end)] == sorted([start, *places, max(start, end)])


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("I ask Ann Lee. And then Bob", "proper", ["Ann Lee", "Bob"]),
        ("go to Rome and Paris", "proper", ["Rome and Paris"]),
        ("go to Rome and Paris", "proper part", ["Rome", "Paris"]),
        ("a cup of Ben & Jerry", "proper part", ["Ben", "Jerry"]),
        ("it is Ann's dog, not Eve’s", "proper", ["Ann", "Eve"]),
        ("play 'Blue Train', \"So What\", “Nardis” or `Solar`", "quoted", ["Blue Train", "So What", "Nardis", "Solar"]),
        ("Bob's and Eve's", "quoted", []),
        ("on May 3rd, 2024 or 4 June", "day as said", ["May 3rd, 2024", "4 June"]),
        ("at 7:30pm or 9 a.m.", "clock", ["19:30", "09:00"]),
        ("at 19:30", "time", ["19:30"]),
        ("by 2024-01-31 or 2024-02-01 09:30 or 1/2/2024", "date", ["2024-01-31", "2024-02-01 09:30", "1/2/2024"]),
        ("compute (9+6)*3.", "formula", ["(9 + 6) * 3"]),
        ("compute 8/ 2 - 1", "formula", ["8 / 2 - 1"]),
        ("on 12/24 or 3-4 or 2024-01-02", "formula", []),
        ("$40, 1,000.5 and -3, but not 1.2.3", "number", ["40", "1,000.5", "-3"]),
        ("it weighs 5kg, not 6lb", "number", ["5", "6"]),
        ("a table for Two", "spelled", ["Two"]),
        ("write to ann@example.org.", "email", ["ann@example.org"]),
        ("see https://example.org/a?b=1.", "url", ["https://example.org/a?b=1"]),
        ("order AB-12 and x7f", "identifier", ["AB-12", "x7f"]),
        ("call os.path, user_name and camelCase", "code", ["os.path", "user_name", "camelCase"]),
    ],
)
def test_spans_of_a_kind(text: str, kind: str, found: list[str]) -> None:
    assert texts(text, kind) == found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("on 2024-01-02", "number"),
        ("write to ann4@example.org", "identifier"),
        ('play "99 Red Balloons"', "number"),
        ('play "99 Red Balloons"', "proper"),
        ("see https://example.org/Ann", "proper"),
    ],
)
def test_in_what_is_a_value_as_a_whole_no_other_is_looked_for(text: str, kind: str) -> None:
    assert texts(text, kind) == []


def test_a_quotation_with_an_address_in_it_is_still_one_value() -> None:
    assert texts('write "ann@example.org and Bob Lee"', "proper") == []


def test_a_word_capitalised_for_its_place_is_no_name() -> None:
    assert texts("user: Find it. Look! Really? Yes\nNow in Oslo", "proper") == ["Oslo"]


@pytest.mark.parametrize(
    ("text", "kind", "day"),
    [
        ("on May 3rd, 2024", "day", Day("2024", 5, 3, 3, 16)),
        ("on 3 June", "day without year", Day("", 6, 3, 3, 9)),
    ],
)
def test_a_day_is_found_with_its_parts(text: str, kind: str, day: Day) -> None:
    found, _ = find_spans(text)
    assert [(span.kind, span.day) for span in found if span.day is not None] == [(kind, day)]


def test_what_is_covered_is_told_from_what_is_not() -> None:
    covered = Covered()
    covered.add(8, 10)
    covered.add(2, 4)
    assert [place for place in range(12) if place in covered] == [2, 3, 8, 9]


@pytest.mark.parametrize(
    ("said", "kind", "found"),
    [
        ("please translate it into german", "phrase to", ["german"]),
        ("a note called buy milk, please", "phrase is", ["buy milk"]),
        ("a song called love at first sight", "phrase is", ["love"]),
        ("a song called love at first sight", "long phrase is", ["love at first sight"]),
        ("a ride from the old mill to work", "phrase from", ["the old mill"]),
        ("music by queen", "phrase with", ["queen"]),
        ("look for it", "phrase for", []),
    ],
)
def test_a_phrase_is_what_follows_a_word_that_opens_one(said: str, kind: str, found: list[str]) -> None:
    assert read(f"user: {said}", kind) == found


def test_phrases_of_old_messages_are_left_out() -> None:
    old = "user: a note called buy milk\n"
    between = "assistant: Well\nuser: Go on\n" * 2
    assert read(f"{old}{between}", "phrase is") == ["buy milk"]
    assert read(f"{old}{between}assistant: Well\nuser: Go on", "phrase is") == []


def test_a_short_message_of_the_user_may_be_an_answer() -> None:
    assert read("user: " + "word " * 15 + "\nassistant: Which title?\nuser: buy milk.\nthe rest", "reply") == [
        "buy milk"
    ]


def test_sentences_of_three_words_or_more_may_be_values() -> None:
    said = "user: How is the weather? I like the sun. Bye now."
    assert (read(said, "question"), read(said, "sentence")) == (["How is the weather?"], ["I like the sun."])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('tags ["a", 1, null] now', ["a", 1, None]),
        ('it is {"a": [1, 2], "b": {}}', {"a": [1, 2], "b": {}}),
        ("tags ['a', 'it'] now", ["a", "it"]),
        ("switch ['a', true]", ["a", True]),
        ("switch ['a', True, \"b\"]", ["a", True, "b"]),
        ("the point (1, 2.5)", [1, 2.5]),
        ("nested [[1, 2], [3]]", [[1, 2], [3]]),
    ],
    ids=["JSON", "object", "quoted once", "JavaScript", "Python", "tuple", "nested"],
)
def test_a_list_that_is_written_out_is_read(text: str, value: Any) -> None:
    assert lists(text, "list", "object") == [value]


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2",
        "(1, 2]",
        "1, 2]",
        "['a]",
        "[x, y]",
        "[]",
        "(1)",
        "{1, 2}",
        "[" * 4000,
        "[{(" * 1000,
        "[" + "1, " * 300 + "1]",
        "[b'a']",
        "[...]",
        "{1: 2}",
    ],
)
def test_what_is_no_list_is_none(text: str) -> None:
    assert lists(text, "list", "object") == []


@pytest.mark.parametrize("text", ["{{}}", "{{ }}", "{{1}}", "{{ name }}", "{(): {}}"])
def test_braces_of_a_template_are_no_object(text: str) -> None:
    assert lists(text, "list", "object") == []


@pytest.mark.parametrize(
    ("text", "value"), [("{[1]: 2}", [1]), ("{{'a': 1}: 2}", {"a": 1}), ("f(x[0], [1, 2])", [0]), ("((1, 2)", [1, 2])]
)
def test_in_what_is_no_list_one_may_be(text: str, value: Any) -> None:
    assert lists(text, "list", "object")[0] == value


@pytest.mark.parametrize("text", ["[1e999]", "{'a': 1e999}", "[-1e999, 2]"])
def test_a_list_with_a_number_that_json_cannot_write_is_none(text: str) -> None:
    assert lists(text, "list", "object") == []


def test_a_list_with_an_escape_that_python_does_not_know_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    lists(r"the folder ['a\d', 'b']")
    assert not recwarn.list


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('tags "red", "green" and "blue"', "list quoted", ["red", "green", "blue"]),
        ("tags 'red' or 'green'", "list quoted", ["red", "green"]),
        ("invite Ann Lee, Bob and Eve", "list name", ["Ann Lee", "Bob", "Eve"]),
        ("go to Rome and Paris", "list name", ["Rome", "Paris"]),
        ("add 4, 5.5 and 1,000", "list number", [4, 5.5, 1000]),
        ("mix red, green and blue", "list word", ["red", "green", "blue"]),
        ("mix red, green, or blue", "list word", ["red", "green", "blue"]),
    ],
)
def test_an_enumeration_is_a_list(text: str, kind: str, value: list[Any]) -> None:
    assert lists(text, kind) == [value]


def test_items_of_a_list_that_is_written_out_are_no_other_list() -> None:
    assert lists("add [4, 5]") == [[4, 5]]


@pytest.mark.parametrize("text", ["[1] " * 500, '{"a": 1} ' * 300, "4, 5; " * 500, "a, b and c. " * 300])
def test_of_many_lists_the_last_are_kept(text: str) -> None:
    assert 1 <= len(lists(text)) <= MAX_FOUND


@pytest.mark.parametrize(
    ("names", "about", "name", "code"),
    [
        ({"country", "code"}, "country_code", "france", "FR"),
        ({"country"}, "country two letters", "united kingdom", "GB"),
        ({"country"}, "country iso 3166", "great britain", "GB"),
        ({"target", "language"}, "target_language language code", "german", "de"),
        ({"lang"}, "lang iso 639", "mandarin", "zh"),
    ],
)
def test_a_name_has_a_code(names: set[str], about: str, name: str, code: str) -> None:
    codes = codes_for(names, about)
    assert codes is not None
    assert codes[name] == code


@pytest.mark.parametrize(
    ("names", "about"), [({"country"}, "country the country's name"), ({"promo", "code"}, "promo_code"), (set(), "")]
)
def test_no_code_is_given_where_none_is_wanted(names: set[str], about: str) -> None:
    assert codes_for(names, about) is None
