"""Whatever is said and whatever a schema holds, lexical guesses are made, and can be written."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ooospec_agents.catalog import Catalog, Function
from ooospec_agents.drafting.sources.lexical import MAX_GUESSES, LexicalValues

STAMP = "%Y-%m-%d %H:%M:%S"
PIECES = (
    "user: |\nuser: |\nassistant: |\ntool: |. |? |, | and | not | in | to | is | city| Oslo| Ann Lee|'s| 'blue'|"
    ' "So What"| 7| 3.5%| $40| two| 7pm| 09:30| May 3rd| 2024-05-01| [1, 2]| [\'a\', "b"]| {"city": "Rome"}| {\'a\': 1}|'
    "[|(|{|]|)|}| {{ name }}| {{}}| {[1]: 2}| [1e999]| Infinity| nan|1e999| a@example.org| https://example.org|"
    ' AB-12| user_name| 9+6*3| the USA| "city": | ["\\ud800"]| \ud800| é| ١٢'
).split("|")
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=24).map("".join)
NAMES = (
    st.sampled_from(("city", "user_id", "year", "start_time", "url", "country_code", "the", "numbers", "")) | st.text()
)
DESCRIPTIONS = st.sampled_from(("", STAMP, "Such as 'x' or \"y\"", "ISO code", "default is 3", "a date")) | st.text()
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
TYPES = st.sampled_from(("string", "integer", "number", "boolean", "array", "object", "null"))
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3),
        "description": DESCRIPTIONS,
        "enum": st.lists(VALUES, max_size=3),
        "default": VALUES,
        "items": st.fixed_dictionaries({}, optional={"type": TYPES}),
        "format": st.sampled_from(("date", "date-time", "uri", "email")),
        "examples": st.lists(VALUES, max_size=3),
    },
)
PROPERTIES = st.dictionaries(NAMES, SCHEMAS, min_size=1, max_size=4)


def function_of(properties: dict[str, Any], required: tuple[str, ...] = ()) -> Function:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    tool = {"type": "function", "function": {"name": "f", "description": "It does it", "parameters": schema}}
    return Catalog.from_tools([tool]).functions[0]


@given(TEXTS, PROPERTIES, st.booleans())
@example("user: {{}}", {"city": {"type": "string"}}, False)
@example("user: [1e999]", {"numbers": {"type": "array", "items": {"type": "number"}}}, True)
@settings(max_examples=100, deadline=None)
def test_whatever_is_said_guesses_are_few_and_their_probabilities_at_most_one(
    text: str, properties: dict[str, Any], required: bool
) -> None:
    function = function_of(properties, required=tuple(properties) if required else ())
    lexical = LexicalValues(text)
    for slot in function.slots:
        for guesses in (lexical.guesses(slot, function), lexical.guesses(slot)):
            assert len(guesses) <= MAX_GUESSES
            assert sum(guess.confidence for guess in guesses) <= 1 + 1e-9


@given(TEXTS, PROPERTIES)
@example("user: [1e999]", {"numbers": {"type": "array", "items": {"type": "number"}}})
@settings(max_examples=100, deadline=None)
def test_whatever_is_said_each_guess_can_be_written_as_json(text: str, properties: dict[str, Any]) -> None:
    function = function_of(properties, required=tuple(properties))
    lexical = LexicalValues(text)
    for slot in function.slots:
        for guess in lexical.guesses(slot, function):
            assert json.loads(json.dumps(guess.value, allow_nan=False)) == guess.value


@given(TEXTS, NAMES, SCHEMAS, TEXTS | st.sampled_from(("2024-", "2024-05-01T1", "your_", "O", "09:", "")))
@settings(max_examples=100, deadline=None)
def test_whatever_has_begun_its_rest_is_a_text(text: str, name: str, schema: dict[str, Any], begun: str) -> None:
    slot = function_of({name: schema}).slots[0]
    for asked in (slot, None):
        rest = LexicalValues(text).finish(asked, begun)
        assert rest is None or isinstance(rest.value, str)


@given(TEXTS, PROPERTIES)
@settings(max_examples=100, deadline=None)
def test_reading_ahead_changes_no_guess(text: str, properties: dict[str, Any]) -> None:
    function = function_of(properties)
    ahead, late = LexicalValues(text), LexicalValues(text)
    ahead.look_ahead()
    assert [ahead.guesses(slot, function) for slot in function.slots] == [
        late.guesses(slot, function) for slot in function.slots
    ]
