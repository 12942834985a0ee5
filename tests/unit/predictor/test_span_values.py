"""From text to values of a slot's type, and back to where they stand."""

from typing import Any

import pytest

from ooospec_agents.catalog import Slot
from ooospec_agents.predictor.values import element, places, read

DAY = Slot("date", ("string",), "The day, YYYY-MM-DD.")


@pytest.mark.parametrize(
    ("text", "slot", "value"),
    [
        ('"Rome",', Slot("city", ("string",)), "Rome"),
        ("'Hello, you!'", Slot("text", ("string",)), "Hello, you!"),
        ("Rome?", Slot("city", ("string",)), "Rome"),
        ("(Rome)", Slot("city", ("string",)), "Rome"),
        ("Children's Hospital", Slot("place", ("string",)), "Children's Hospital"),
        ("5 days", Slot("n", ("integer",)), 5),
        ("$1,200", Slot("n", ("integer",)), 1200),
        ("five", Slot("n", ("integer",)), 5),
        ("2.5", Slot("n", ("integer",)), None),
        ("2.5", Slot("n", ("number",)), 2.5),
        ("5%", Slot("n", ("number",)), 0.05),
        ("5%", Slot("n", ("integer",)), 5),
        ("3 million", Slot("n", ("integer",)), 3_000_000),
        ("soon", Slot("n", ("integer",)), None),
        ("True", Slot("b", ("boolean",)), True),
        ("maybe", Slot("b", ("boolean",)), None),
        ("celsius", Slot("u", ("string",), options=("Celsius", "Kelvin")), "Celsius"),
        ("living room", Slot("u", ("string",), options=("living_room",)), "living_room"),
        ("Mars", Slot("u", ("string",), options=("Celsius", "Kelvin")), None),
        ("March 5th, 2024", DAY, "2024-03-05"),
        ("March 5th, 2024", Slot("when", ("string",), "The date."), "March 5th, 2024"),
        ("3 pm", Slot("at", ("string",), "Time as HH:MM."), "15:00"),
        ("[1, 2]", Slot("l", ("array",)), [1, 2]),
        ("one and two", Slot("l", ("array",)), None),
        ("7", Slot("x"), 7),
        ("seven", Slot("x"), "seven"),
        ("NaN", Slot("x"), "NaN"),
        ("[1e999]", Slot("l", ("array",)), None),
        ("...", Slot("city", ("string",)), "..."),
        (" ,", Slot("city", ("string",)), None),
    ],
)
def test_text_reads_as_the_value_that_the_slot_wants(text: str, slot: Slot, value: Any) -> None:
    got = read(text, slot)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("value", "text", "slot", "found"),
    [
        ("Rome", "Romeo sees rome, then Rome.", Slot("c", ("string",)), ["Rome"]),
        (12, "12 of 120, twelve", Slot("n", ("integer",)), ["12", "twelve"]),
        ("2024-03-05", "from March 5th, 2024 on", DAY, ["March 5th, 2024"]),
        ("2024-03-05", "from March 6th, 2024 on", DAY, []),
        (True, "say true or false", Slot("b", ("boolean",)), ["true"]),
        ([1, 2], "of [1, 2] and [3]", Slot("l", ("array",)), ["[1, 2]"]),
    ],
)
def test_a_value_is_found_where_it_reads_back(value: Any, text: str, slot: Slot, found: list[str]) -> None:
    assert list(dict.fromkeys(text[start:end] for start, end in places(value, text, slot))) == found


def test_a_lists_elements_have_its_items_type_and_options() -> None:
    slot = Slot("l", ("array",), schema={"items": {"type": "integer", "enum": [1, 2]}})
    assert element(slot).types == ("integer",)
    assert read("2", element(slot)) == 2
    assert read("3", element(slot)) is None
    assert element(Slot("l", ("array",))).types == ("string",)
