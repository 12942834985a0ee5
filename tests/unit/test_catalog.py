"""Tools, in the forms in which clients send them, become functions and slots."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooospec_agents.catalog import MAX_FUNCTION_CHARS, MAX_INNER, MAX_SLOTS, Catalog, Function, Slot, inner_slots


def tool(parameters: Any, name: str = "f") -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": "Does f.", "parameters": parameters},
    }


def slot_of(schema: Any, **document: Any) -> Slot:
    catalog = Catalog.from_tools([tool({"type": "object", "properties": {"x": schema}, **document})])
    (function,) = catalog.functions
    assert function.understood
    return function.slots[0]


WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city."},
        "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
    },
    "required": ["city"],
}


def test_chat_form() -> None:
    (function,) = Catalog.from_tools([tool(WEATHER, "weather")]).functions
    city = Slot("city", ("string",), "The city.", required=True, schema=WEATHER["properties"]["city"])  # type: ignore[index]
    unit = Slot(
        "unit",
        ("string",),
        options=("C", "F"),
        default="C",
        has_default=True,
        schema=WEATHER["properties"]["unit"],  # type: ignore[index]
    )
    assert function == Function("weather", "Does f.", (city, unit))


def test_responses_form_is_the_same_catalog() -> None:
    flat = {
        "type": "function",
        "name": "weather",
        "description": "Does f.",
        "parameters": WEATHER,
        "strict": True,
    }
    assert Catalog.from_tools([flat]) == Catalog.from_tools([tool(WEATHER, "weather")])


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, {"type": "object", "properties": {}}, True])
def test_zero_arguments(parameters: Any) -> None:
    assert Catalog.from_tools([tool(parameters)]).functions == (Function("f", "Does f."),)


def test_missing_parameters_are_zero_arguments() -> None:
    assert Catalog.from_tools([{"type": "function", "function": {"name": "f"}}]).functions == (Function("f"),)


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, ("string",)),
        ({"type": ["string", "null"]}, ("string", "null")),
        ({"type": "integer", "nullable": True}, ("integer", "null")),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, ("integer", "null")),
        (
            {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            ("string", "array"),
        ),
        ({"anyOf": [{"type": "integer"}, {}]}, ()),
        ({"enum": ["a", 1]}, ("string", "integer")),
        ({"const": True}, ("boolean",)),
        ({"properties": {"a": {"type": "string"}}}, ("object",)),
        ({"type": "any"}, ()),
        ({}, ()),
    ],
)
def test_types(schema: Any, types: tuple[str, ...]) -> None:
    assert slot_of(schema).types == types


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ({"enum": ["a", "b"]}, ("a", "b")),
        ({"const": 3}, (3,)),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, ("a", "b", None)),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, ("a", "b")),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ()),
        ({"anyOf": [{"type": "null"}]}, ()),
        ({"enum": list(range(257))}, ()),
    ],
)
def test_options(schema: Any, options: tuple[Any, ...]) -> None:
    assert slot_of(schema).options == options


def test_default_null_is_a_default() -> None:
    assert slot_of({"type": "string", "default": None}).has_default


def test_pydantic_reference_with_siblings() -> None:
    color = {"enum": ["red", "blue"], "type": "string", "description": "A color."}
    slot = slot_of(
        {"$ref": "#/$defs/Color", "description": "Of the car.", "default": "red"},
        **{"$defs": {"Color": color}},
    )
    assert (slot.options, slot.description, slot.default) == (("red", "blue"), "Of the car.", "red")


def test_reference_with_escapes() -> None:
    assert slot_of({"$ref": "#/$defs/a~1b%20c"}, **{"$defs": {"a/b c": {"type": "number"}}}).types == ("number",)


def test_all_of_is_merged() -> None:
    first = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    second = {"properties": {"b": {"type": "integer"}}, "required": ["b"]}
    assert slot_of({"allOf": [{"$ref": "#/$defs/First"}, second]}, **{"$defs": {"First": first}}).schema == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }


def test_recursive_type_is_cut_off() -> None:
    node = {"type": "object", "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}}}
    inner = {"type": "object", "properties": {"value": {"type": "integer"}, "next": {}}}
    outer = {"type": "object", "properties": {"value": {"type": "integer"}, "next": inner}}
    assert slot_of({"$ref": "#/$defs/Node"}, **{"$defs": {"Node": node}}).schema == outer


def test_reference_to_itself_allows_anything() -> None:
    assert slot_of({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"$ref": "#/$defs/A"}}}).types == ()


def test_optional_model_at_the_top() -> None:
    (function,) = Catalog.from_tools([tool({"anyOf": [WEATHER, {"type": "null"}]})]).functions
    assert [slot.name for slot in function.slots] == ["city", "unit"]


@pytest.mark.parametrize(
    "parameters",
    [
        "city",
        {"type": "string"},
        {"type": 3, "properties": {}},
        {"type": "object", "properties": ["city"]},
        {"type": "object", "properties": {"x": "string"}},
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/Missing"}}},
        {"type": "object", "properties": {"x": {"$ref": "https://example.com/schema"}}},
        {"oneOf": [WEATHER, {"type": "object", "properties": {}}]},
        {"type": "object", "properties": {f"p{i}": {} for i in range(MAX_SLOTS + 1)}},
        {"type": "object", "properties": {"x": {"type": "string", "default": "y" * MAX_FUNCTION_CHARS}}},
        {"type": "object", "properties": {"x": {"enum": [1.0, float("inf")]}}},
        {"type": "object", "properties": {"x": {"default": {1, 2}}}},
    ],
)
def test_schema_not_understood_costs_only_its_function(parameters: Any) -> None:
    catalog = Catalog.from_tools([tool(parameters), tool(WEATHER, "weather")])
    assert catalog.functions[0] == Function("f", "Does f.", understood=False)
    assert [slot.name for slot in catalog.functions[1].slots] == ["city", "unit"]


def test_exponential_schema_is_refused() -> None:
    definitions: dict[str, Any] = {"d0": {"type": "string"}}
    for level in range(1, 11):
        ref = {"$ref": f"#/$defs/d{level - 1}"}
        definitions[f"d{level}"] = {"type": "object", "properties": {str(i): ref for i in range(8)}}
    catalog = Catalog.from_tools([tool({"properties": {"x": {"$ref": "#/$defs/d10"}}, "$defs": definitions})])
    assert not catalog.functions[0].understood


@pytest.mark.parametrize(
    "other",
    [
        {"type": "web_search"},
        {"type": "custom", "custom": {"name": "f"}},
        {"type": "function"},
        {"type": "function", "function": {"name": ""}},
        {"type": "function", "function": {"name": 7}},
        {"name": "f", "parameters": {}},
        "f",
        None,
    ],
)
def test_what_is_no_function_is_passed_over(other: Any) -> None:
    assert Catalog.from_tools([other, tool(WEATHER)]) == Catalog.from_tools([tool(WEATHER)])


def test_parameters_inside_a_value_outer_ones_first_and_not_without_end() -> None:
    field = {"type": "string"}
    rows = {"type": "array", "items": {"type": "object", "properties": {"a": field, "b": field}, "required": ["b"]}}
    found = [(path, slot.name, slot.required) for path, slot in inner_slots(slot_of(rows))]
    assert found == [("[]", "x", True), ("[].a", "a", False), ("[].b", "b", True)]
    wide = {"type": "object", "properties": {f"p{number}": rows for number in range(MAX_INNER + 1)}}
    assert len(list(inner_slots(slot_of(wide)))) == MAX_INNER
    assert list(inner_slots(slot_of(field))) == []


def test_first_of_a_name_counts() -> None:
    assert Catalog.from_tools([tool(None), tool(WEATHER)]).functions == (Function("f", "Does f."),)


@pytest.mark.parametrize("tools", [None, {}, "tools", 3])
def test_no_list_is_no_catalog(tools: Any) -> None:
    assert Catalog.from_tools(tools).functions == ()


def test_id_is_by_content_and_order() -> None:
    one, other = tool(WEATHER, "a"), tool(None, "b")
    assert Catalog.from_tools([one, other]).id == Catalog.from_tools([dict(one), dict(other)]).id
    assert Catalog.from_tools([one, other]).id != Catalog.from_tools([other, one]).id


def test_json_round_trip() -> None:
    catalog = Catalog.from_tools([tool(WEATHER, "weather"), tool("?", "odd"), tool(None, "none")])
    assert Catalog.from_json(catalog.to_json()) == catalog


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"id":"x","functions":[{}]}', '{"id":"x","functions":3}'])
def test_json_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Catalog.from_json(text)


KEYS = [
    "type",
    "properties",
    "anyOf",
    "allOf",
    "$ref",
    "enum",
    "const",
    "required",
    "items",
    "default",
    "nullable",
    "$defs",
]
WORDS = ["object", "string", "null", "#", "#/properties/x", "#/parameters", "array"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(st.one_of(JSON, st.lists(JSON, max_size=3)))
def test_any_json_never_raises(tools: Any) -> None:
    Catalog.from_tools(tools)


@given(JSON)
@settings(max_examples=300)
def test_any_parameters_never_raise_and_travel(parameters: Any) -> None:
    catalog = Catalog.from_tools([tool(parameters)])
    assert len(catalog.functions) == 1
    assert Catalog.from_json(catalog.to_json()) == catalog


def test_very_deep_json_never_raises() -> None:
    deep: Any = json.loads("[" * 900 + "]" * 900)
    assert Catalog.from_tools([tool({"properties": {"x": {"default": deep}}})]).functions[0].name == "f"
