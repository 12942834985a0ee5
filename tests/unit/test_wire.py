"""Whole calls written in each wire format."""

import pytest

from ooospec_agents.formats import FORMATS, choose_format

CALL = ("get_weather", {"city": "Paris", "days": 3})
WRITTEN = {
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>',
    "fenced": '```json\n{\n  "name": "get_weather",\n  "arguments": {\n    "city": "Paris",\n    "days": 3\n  }\n}\n```',
    "json": '{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}',
    "array": '[{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}]',
    "arguments": '{"city": "Paris", "days": 3}',
    "llama3_json": '{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}',
    "mistral": '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris", "days": 3}',
    "mistral_array": '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}]',
    "mistral_json": '[{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}]',
    "pythonic": '[get_weather(city="Paris", days=3)]',
    "lfm2": '<|tool_call_start|>[get_weather(city="Paris", days=3)]<|tool_call_end|>',
    "olmo3": '<function_calls>get_weather(city="Paris", days=3)</function_calls>',
    "qwen3_coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    ),
    "mimo": (
        "<tool_call><function=get_weather><parameter=city>Paris</parameter>"
        "<parameter=days>3</parameter></function></tool_call>"
    ),
}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_call_is_written(name: str) -> None:
    assert "".join(segment.text for segment in FORMATS[name].write([CALL])) == WRITTEN[name]


def test_two_calls_in_hermes() -> None:
    text = "".join(segment.text for segment in FORMATS["hermes"].write([("a", {}), ("b", {})]))
    assert text == (
        '<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "b", "arguments": {}}\n</tool_call>'
    )


def test_two_calls_in_an_array() -> None:
    text = "".join(segment.text for segment in FORMATS["array"].write([("a", {}), ("b", {"x": [1]})]))
    assert text == '[{"name": "a", "parameters": {}}, {"name": "b", "parameters": {"x": [1]}}]'


@pytest.mark.parametrize(
    ("parser", "choice", "expected"),
    [
        ("hermes", None, "hermes"),
        ("hermes", "required", "hermes"),
        ("ooospec_json", "auto", "fenced"),
        ("ooospec_json", "required", "hermes"),
        ("ooospec_json", {"type": "function", "function": {"name": "f"}}, "hermes"),
        (None, "required", "array"),
        (None, {"type": "function", "function": {"name": "f"}}, "arguments"),
        (None, "auto", None),
        ("hermes", "none", None),
        ("deepseek_v3", "auto", None),
        ("deepseek_v3", "required", None),
        ("llama3_json", "auto", "llama3_json"),
        ("llama4_json", "required", "llama3_json"),
        ("mistral", "auto", "mistral"),
        ("mistral", {"type": "function", "function": {"name": "f"}}, "mistral_json"),
        ("pythonic", "auto", "pythonic"),
        ("llama4_pythonic", "required", "array"),
        ("lfm2", {"type": "function", "function": {"name": "f"}}, "arguments"),
        ("qwen3_coder", "required", "qwen3_coder"),
        ("qwen3_xml", {"type": "function", "function": {"name": "f"}}, "qwen3_coder"),
        ("mimo", "auto", "mimo"),
    ],
)
def test_the_format_follows_parser_and_tool_choice(parser: str | None, choice: object, expected: str | None) -> None:
    assert choose_format(parser, choice) == expected


def test_no_tools_no_draft() -> None:
    assert choose_format("hermes", "auto", has_tools=False) is None


def test_a_constrained_answer_is_no_call() -> None:
    assert choose_format("hermes", "auto", {"type": "json_schema"}) is None
    assert choose_format("hermes", "auto", {"type": "text"}) == "hermes"
