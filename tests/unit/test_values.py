"""A slot among its function's, and the values that it may have."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ooospec_agents.catalog import Function, Slot
from ooospec_agents.drafting.sources.candidates import candidates, typed
from ooospec_agents.drafting.sources.reading import Reading
from ooospec_agents.drafting.sources.wanted import Wanted, about, class_of

STAMP = "%Y-%m-%d %H:%M:%S"
MOMENT = "ISO 8601, such as 2026-01-31T09:00:00"


def possible(conversation: str, slot: Slot) -> list[tuple[Any, dict[str, float]]]:
    """The values that a slot may have, each with what is known of it beside its place."""
    reading = Reading(conversation)
    found = candidates(reading, reading.places, Wanted.alone(slot))
    return [(one.value, dict(one.features)) for one in found]


def known(conversation: str, slot: Slot, value: Any) -> dict[str, float]:
    """What is known of one value; it may have no other place."""
    (features,) = (features for found, features in possible(conversation, slot) if found == value)
    return features


@pytest.mark.parametrize(
    ("slot", "kind"),
    [
        (Slot("date", ("string",), options=("today", "tomorrow")), "option"),
        (Slot("date", ("boolean",)), "boolean"),
        (Slot("dates", ("array",)), "array"),
        (Slot("place", ("object",)), "object"),
        (Slot("id", ("integer", "null")), "integer"),
        (Slot("price", ("number",)), "number"),
        (Slot("start", ("string",), STAMP), "moment"),
        (Slot("start", ("string",), MOMENT), "moment"),
        (Slot("date", ("string",)), "date"),
        (Slot("check_in", ("string",), "a date, YYYY-MM-DD"), "date"),
        (Slot("time", ("string",)), "time"),
        (Slot("when", ("string",), "date and time"), "time"),
        (Slot("update", ("string",)), "other"),
        (Slot("recipient", ("string",), "mail address"), "email"),
        (Slot("homepage", ("string",), schema={"format": "uri"}), "url"),
        (Slot("input", ("string",), "the expression"), "formula"),
        (Slot("user_id", ("string",)), "secret"),
        (Slot("userName", ("string",)), "name"),
        (Slot("departure_city", ("string",)), "place"),
        (Slot("search_query", ("string",)), "text"),
        (Slot("guest_name", ("string",)), "name"),
        (Slot("city_name", ("string",)), "place"),
        (Slot("seat", ("string",)), "other"),
        (Slot("seat"), "other"),
    ],
)
def test_what_a_slot_is_about(slot: Slot, kind: str) -> None:
    assert class_of(slot, about(slot)) == kind


def test_a_word_that_several_slots_share_weighs_less() -> None:
    function = Function("fly", slots=(Slot("origin_city"), Slot("target_city")))
    origin, target = Wanted.of(function)
    assert origin.share == {"origin": pytest.approx(Fraction(2, 3)), "city": pytest.approx(Fraction(1, 3))}
    assert (origin.others, target.others) == (frozenset({"target"}), frozenset({"origin"}))


def test_alone_all_words_of_a_name_weigh_the_same() -> None:
    wanted = Wanted.alone(Slot("origin_city", description="The city of departure"))
    assert wanted.share == {"origin": 0.5, "city": 0.5}
    assert (wanted.index, wanted.others, wanted.described) == (-1, frozenset(), frozenset({"departure"}))


def test_a_slot_is_counted_among_those_of_its_class() -> None:
    kinds = ("integer", "string", "number", "integer")
    function = Function("f", slots=tuple(Slot(f"x{at}", (kind,)) for at, kind in enumerate(kinds)))
    assert [wanted.index for wanted in Wanted.of(function)] == [0, -1, -1, 1]


@pytest.mark.parametrize(
    ("name", "edge"),
    [("start_date", "first"), ("checkIn", "first"), ("end_date", "last"), ("checkOut", "last"), ("date", "")],
)
def test_a_name_tells_the_first_of_two_from_the_last(name: str, edge: str) -> None:
    assert Wanted.alone(Slot(name)).edge == edge


@pytest.mark.parametrize(("description", "asked"), [("As YYYY-MM-DD", True), (STAMP, True), ("The day", False)])
def test_a_description_may_say_how_a_day_is_written(description: str, asked: bool) -> None:
    assert Wanted.alone(Slot("date", ("string",), description)).asks_form == asked


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("7", "integer", 7),
        ("1,000", "integer", 1000),
        ("7.0", "integer", None),
        ("7.0", "number", 7.0),
        ("7", "number", 7),
        ("Two", "integer", 2),
        ("Two", "string", "Two"),
        ("a few", "integer", None),
        ("12345678901234567890", "integer", 12345678901234567890),
        ("9" * 400, "number", None),
        ("Infinity", "number", None),
        ("nan", "number", None),
    ],
)
def test_a_text_as_a_value_of_a_type(text: str, kind: str, value: Any) -> None:
    found = typed(text, Slot("x", (kind,)))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("said", ["3.5 percent", "3.5 %"])
def test_a_percentage_may_be_a_part_of_one(said: str) -> None:
    found = possible(f"user: at {said}", Slot("rate", ("number",)))
    assert found == [(0.035, {"percent as share": 1.0}), (3.5, {"percent as is": 1.0})]


def test_a_percentage_is_no_part_of_one_where_a_whole_number_is_wanted() -> None:
    assert possible("user: at three percent", Slot("rate", ("integer",))) == [(3, {})]


@pytest.mark.parametrize(
    ("said", "value"), [("Germany", "DE"), ("the United Kingdom", "GB"), ("the USA", "US"), ("the U.S.", "US")]
)
def test_a_name_may_be_a_code(said: str, value: str) -> None:
    slot = Slot("country_code", ("string",), required=True)
    assert (value, {"as code": 1.0}) in possible(f"user: shops of {said} please", slot)


@pytest.mark.parametrize(
    ("name", "description", "midnight", "evening"),
    [
        ("start", STAMP, "2024-05-01 00:00:00", "2024-05-01 19:00:00"),
        ("end", STAMP, "2024-05-01 23:59:59", "2024-05-01 19:00:00"),
        ("start", MOMENT, "2024-05-01T00:00:00", "2024-05-01T19:00:00"),
    ],
)
def test_a_day_may_have_a_time(name: str, description: str, midnight: str, evening: str) -> None:
    said, slot = "user: on May 1st, 2024 at 7pm", Slot(name, ("string",), description)
    assert known(said, slot, midnight) == {"whole day": 1.0, "year 0": 1.0}
    assert known(said, slot, evening) == {"day with clock": 1.0, "clock beside": 1.0, "clock 0": 1.0, "year 0": 1.0}


def test_a_clock_time_far_from_a_day_is_told_from_one_beside() -> None:
    said = "user: on May 1st, 2024 at 7pm, and as we said before, again with all the others at 8pm"
    assert known(said, Slot("start", ("string",), STAMP), "2024-05-01 20:00:00") == {
        "day with clock": 1.0,
        "clock apart": 1.0,
        "clock 1": 1.0,
        "year 0": 1.0,
    }


def test_a_day_without_a_year_is_one_of_four() -> None:
    found = possible("user: on May 3rd", Slot("date", ("string",)))
    assert [pair for pair in found if pair[1]] == [
        ("2023-05-03", {"year 0": 1.0}),
        ("2024-05-03", {"year 1": 1.0}),
        ("2022-05-03", {"year 2": 1.0}),
        ("2021-05-03", {"year 3": 1.0}),
        ("", {"kind empty": 1.0, "kind empty, optional": 1.0, "date: empty": 1.0}),
    ]


def test_a_day_is_no_value_of_a_slot_about_something_else() -> None:
    found = possible("user: on May 3rd, 2024 at 7pm", Slot("city", ("string",)))
    assert not {"2024-05-03", "19:00"}.intersection(value for value, _ in found)


def test_options_are_known_by_what_is_said_of_them() -> None:
    slot = Slot("unit", ("string",), "Default: metric", False, ("metric", "imperial"), "metric", True)
    assert possible("user: Metric?\nuser: Use Imperial units", slot) == [
        (
            "metric",
            {"option default": 1.0, "option described as default": 1.0, "option index 0": 1.0, "option said": 1.0},
        ),
        (
            "imperial",
            {
                "option index 1": 1.0,
                "option said last": 1.0,
                "option said": 1.0,
                "option words": 1.0,
                "option stems": 1.0,
            },
        ),
    ]


def test_a_part_of_an_options_words_counts_for_a_part() -> None:
    found = known("user: the booking of it", Slot("kind", options=("book_room", "other")), "book_room")
    assert found == {"option no default": 1.0, "option index 0": 1.0, "option stems": 0.5}


def test_a_boolean_is_known_by_its_name_and_a_negation() -> None:
    slot = Slot("include_breakfast", ("boolean",))
    shared = {"boolean no default": 1.0}
    assert possible("user: a room without breakfast", slot) == [
        (
            True,
            shared
            | {
                "boolean index 0": 1.0,
                "True named": 0.5,
                "True denied": 1.0,
                "True named, denied": 0.5,
                "True optional": 1.0,
            },
        ),
        (
            False,
            shared
            | {
                "boolean index 1": 1.0,
                "False named": 0.5,
                "False denied": 1.0,
                "False named, denied": 0.5,
                "False optional": 1.0,
            },
        ),
    ]


@pytest.mark.parametrize(("item", "fits"), [("string", "items of the type"), ("integer", "items of another type")])
def test_a_list_is_known_by_its_items(item: str, fits: str) -> None:
    slot = Slot("tags", ("array",), schema={"items": {"type": item}})
    assert known("user: tags ['a', 'b']", slot, ["a", "b"]) == {fits: 1.0}


def test_a_single_value_may_be_a_list_of_one() -> None:
    slot = Slot("sizes", ("array",), required=True, schema={"items": {"type": "integer"}})
    assert possible("user: the size 40 please", slot) == [
        ([40], {"only item": 1.0, "only item: number": 1.0}),
        ([], {"array: empty": 1.0, "array: empty, needed": 1.0}),
    ]


def test_an_object_is_one_that_was_written_out_the_default_or_empty() -> None:
    slot = Slot("filters", ("object",), default={"b": 2}, has_default=True)
    assert possible("user: filters {'a': 1}, not [2]", slot) == [
        ({"a": 1}, {"items of the type": 1.0}),
        ({"b": 2}, {"object: default": 1.0}),
        ({}, {"object: empty": 1.0, "object: empty, optional": 1.0}),
    ]


def test_a_schema_names_values() -> None:
    slot = Slot("token", ("string",), "Such as 'x1' or, e.g., 'y2'", default="z3", has_default=True)
    assert [value for value, _ in possible("user: go", slot)] == ["go", "z3", "x1", "y2", "your_token_here", ""]


def test_what_is_needed_is_not_empty_and_none_is_no_default() -> None:
    slot = Slot("seat", ("string",), required=True, default=None, has_default=True)
    assert possible("user: go", slot) == [("go", {})]


def test_a_year_is_one_of_four_where_none_was_said() -> None:
    found = possible("user: go", Slot("year", ("integer",), required=True))
    assert found[0] == (
        2023,
        {"kind year unsaid 0": 1.0, "kind year unsaid 0, needed": 1.0, "integer: year unsaid 0": 1.0},
    )
    assert [value for value, _ in found] == [2023, 2024, 2022, 2021]
