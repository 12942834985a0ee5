"""A value written as an answer is read back as it was; garbage is dropped."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.catalog import Slot
from ooospec_agents.hint import SlotHint
from ooospec_agents.sidecar.answers import read_answer, render_answer

STRING, INTEGER, NUMBER = Slot("s", ("string",)), Slot("i", ("integer",)), Slot("n", ("number",))
BOOLEAN, ARRAY, OBJECT, ANY = (
    Slot("b", ("boolean",)),
    Slot("a", ("array",)),
    Slot("o", ("object",)),
    Slot("x"),
)
MIXED = Slot("m", ("integer", "string"))
UNITS = Slot("u", ("string",), options=("Celsius", "celsius", "Fahrenheit"))
LEVELS = Slot("l", ("integer", "boolean"), options=(1, 2, True))


@pytest.mark.parametrize(
    ("value", "slot", "answer"),
    [
        ("Oslo", STRING, " Oslo"),
        ("2024-03-05", STRING, " 2024-03-05"),
        ("5", STRING, " 5"),
        ("5", MIXED, ' "5"'),
        (5, MIXED, " 5"),
        ("null", STRING, ' "null"'),
        ("", STRING, ' ""'),
        (" a", STRING, ' " a"'),
        ("a\nb", STRING, ' "a\\nb"'),
        ('"a"', STRING, ' "\\"a\\""'),
        ("é", ANY, " é"),
        (None, STRING, " null"),
        (True, BOOLEAN, " true"),
        (2.5, NUMBER, " 2.5"),
        ([1, "é"], ARRAY, ' [1,"é"]'),
        ({"a": None}, OBJECT, ' {"a":null}'),
        ("Fahrenheit", UNITS, " Fahrenheit"),
    ],
)
def test_rendered(value: Any, slot: Slot, answer: str) -> None:
    assert render_answer(value, slot) == answer


@pytest.mark.parametrize(
    ("text", "slot", "value"),
    [
        (" Oslo \nQuestion: more", STRING, "Oslo"),
        (' "Oslo"', STRING, "Oslo"),
        (" 42", INTEGER, 42),
        (" 1,250", INTEGER, 1250),
        (' "42"', INTEGER, 42),
        (" 5 days", INTEGER, 5),
        (" 5.0", INTEGER, 5),
        (" -3", NUMBER, -3),
        (" 1e3", NUMBER, 1000.0),
        (" True.", BOOLEAN, True),
        (" fahrenheit", UNITS, "Fahrenheit"),
        (" celsius", UNITS, "celsius"),
        (' "Celsius"', UNITS, "Celsius"),
        (" 2", LEVELS, 2),
        (" true", LEVELS, True),
        (' ["a"]', ARRAY, ["a"]),
        (' {"a": 1}', OBJECT, {"a": 1}),
        (" [1]", ANY, [1]),
        (" Oslo", ANY, "Oslo"),
    ],
)
def test_read(text: str, slot: Slot, value: Any) -> None:
    read = read_answer(text, slot)
    assert read == SlotHint(value=value)
    assert type(read.value) is type(value)


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ("", STRING),
        (" \n", STRING),
        (" many", INTEGER),
        (" 2.5", INTEGER),
        (" NaN", NUMBER),
        (" 1e999", NUMBER),
        (" -1e999", INTEGER),
        (" [1e999]", ARRAY),
        (" yes", BOOLEAN),
        (" kelvin", UNITS),
        (" [1, 2", ARRAY),
        (" a, b", ARRAY),
        (" [1]", OBJECT),
        (" " + "[" * 5000, ARRAY),
    ],
)
def test_garbage_is_dropped(text: str, slot: Slot) -> None:
    assert read_answer(text, slot) is None


def test_null_is_absent() -> None:
    assert read_answer(" null", STRING) == SlotHint(absent=True)


def test_null_is_the_value_where_it_is_the_default() -> None:
    assert read_answer(" null", Slot("s", ("string",), has_default=True)) == SlotHint(value=None)


SLOTS = [STRING, INTEGER, NUMBER, BOOLEAN, ARRAY, OBJECT, ANY, MIXED, UNITS, LEVELS]
SCALARS = st.booleans() | st.integers(-(10**17), 10**17) | st.text(max_size=12)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(st.text(max_size=12))
def test_any_string_comes_back(value: str) -> None:
    read = read_answer(render_answer(value, STRING), STRING)
    assert read == SlotHint(value=value)


@given(VALUES)
def test_any_value_comes_back_where_anything_is_allowed(value: Any) -> None:
    read = read_answer(render_answer(value, ANY), ANY)
    assert read is not None
    assert read.value == value


@given(st.text(), st.sampled_from(SLOTS))
def test_any_text_is_read(text: str, slot: Slot) -> None:
    read_answer(text, slot)
