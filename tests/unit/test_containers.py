"""Lists and objects that a target has begun, written on."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooospec_agents.catalog import Slot, slot_of
from ooospec_agents.drafting.containers import GoingOn, read
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.copying import copy_rest, next_item
from ooospec_agents.formats import FLAT, INDENTED, Style

SAID = "user: Buy apples, pears and figs for 12, 45 and 7 people at Rue Haute 3."
LIST = {"type": "array", "items": {"type": "string"}}
ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string"}, "floor": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["street", "floor"],
}


def goes_on(raw: str, schema: dict[str, Any] | None = None, style: Style | None = None, said: str = SAID) -> str:
    slot = None if schema is None else slot_of("slot", schema, True)

    def guesses(_: str, inner: Slot) -> list[Guess]:
        return [Guess(3, 0.5, "lexical")] if "integer" in inner.types else []

    going_on = GoingOn(slot, style or Style(FLAT), said, guesses, lambda begun: copy_rest(begun, said))
    return "".join(part.text for part in going_on.parts(raw))


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ('["apples"', ', "pears", "figs"]'),
        ('["apples",', ' "pears", "figs"]'),
        ('["apples", ', '"pears", "figs"]'),
        ('["apples", "pe', 'ars", "figs"]'),
        ("[12", ", 45, 7]"),
        ("[12, 4", "5, 7]"),
        ('["plums"', "]"),
    ],
)
def test_a_list_follows_the_enumeration_of_the_conversation(begun: str, rest: str) -> None:
    assert goes_on(begun, LIST if '"' in begun else None) == rest


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ("{", '"street": "'),
        ('{"st', 'reet": "'),
        ('{"street": "Rue H', 'aute 3", "floor": 3}'),
        ('{"street": "x"', ', "floor": 3}'),
        ('{"street": "x", "floor"', ": 3}"),
        ('{"street": "x", "floor": 3, "note": "y"', "}"),
    ],
)
def test_an_object_follows_its_schema(begun: str, rest: str) -> None:
    assert goes_on(begun, ADDRESS) == rest


def test_objects_in_a_list_follow_the_schema_of_its_items() -> None:
    assert goes_on('[{"street": "x", ', {"type": "array", "items": ADDRESS}).startswith('"floor": 3}')


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ('{"key1": "value1", "key2": "value2"', ', "key3": "value3"'),
        ('{"key1": "value1", "ke', 'y2": "value2"'),
        ('{"a4": "x", "a5": "x"', ', "a6": '),  # its values are not numbered
        ('["item1", "item2"', ', "item3"'),
        ("[1, 2, 3", ", 4"),
    ],
)
def test_what_is_numbered_is_counted_on(begun: str, rest: str) -> None:
    slot = Slot("slot", ("object", "array"), schema={})
    parts = GoingOn(slot, Style(FLAT), SAID, lambda *_: [], lambda _: None).parts(begun)
    written = ""
    for part in parts:
        written += part.text
        if len(written) >= len(rest):
            break
    assert written.startswith(rest)


def test_counting_on_ends() -> None:
    assert len(goes_on("[1, 2")) < 500


def test_free_keys_follow_the_enumeration_of_the_conversation() -> None:
    said = "user: Serialize a map with keys 'name', 'age' and 'email'."
    assert goes_on('{"name": "x"', {"type": "object"}, said=said).startswith(', "age": ')


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ('{\n      "a": 1,\n', '      "b": 2'),  # the gap has begun
        ('{\n      "a": 1,\n      "b": 2\n', "    }"),  # before a comma no line ends
    ],
)
def test_a_gap_that_has_begun_is_finished(begun: str, rest: str) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1]}, "b": {"enum": [2]}}, "required": ["a", "b"]}

    def guesses(_: str, inner: Slot) -> list[Guess]:
        return [Guess(inner.options[0], 0.9, "schema")]

    parts = GoingOn(slot_of("slot", schema, True), Style(INDENTED), SAID, guesses, lambda _: None).parts(begun)
    assert "".join(part.text for part in parts).startswith(rest)


def test_an_indented_object_stays_indented() -> None:
    begun = '{\n      "street": "x",\n      "floor": 3'
    assert goes_on(begun, ADDRESS, Style(INDENTED)) == "\n    }"
    assert goes_on('{\n      "street": "x"', ADDRESS, Style(INDENTED)) == ',\n      "floor": 3\n    }'


def test_nothing_is_made_up_where_neither_schema_nor_conversation_knows() -> None:
    assert goes_on('{"a": ') == ""
    assert goes_on('{"a": 1, "') == ""


@pytest.mark.parametrize(
    ("item", "text", "following"),
    [
        ("a", "take a, b and c", "b"),
        ("b", "take a, b and c", "c"),
        ("c", "take a, b and c", None),
        ("Oslo", "from Oslo to Rome", None),
        ("red", "in 'red', 'light blue' or green", "light blue"),
        ("1.5", "sizes 1.5, 2.5", "2.5"),
        ("", "a, b", None),
    ],
)
def test_enumerations(item: str, text: str, following: str | None) -> None:
    assert next_item(item, text) == following


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.text(alphabet='{}[]",: \\\n1ae-', max_size=40), JSON, st.text(max_size=40))
def test_whatever_stands_there_it_ends(begun: str, schema: Any, said: str) -> None:
    goes_on("[" + begun, schema if isinstance(schema, dict) else LIST, said=said)
    goes_on("{" + begun, {"properties": schema, "required": schema}, said=said)


@given(st.lists(JSON, min_size=1), st.integers(min_value=1, max_value=200))
def test_however_json_is_cut_its_open_containers_are_known(value: Any, cut: int) -> None:
    import json

    raw = json.dumps(value)[:cut]
    opened = read(raw).open
    whole = cut >= len(json.dumps(value))
    assert bool(opened) != whole
