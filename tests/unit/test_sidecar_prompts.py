"""The sidecar's prompts are exact text: a trained adapter depends on every byte."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.sidecar import prompts

CATALOG = Catalog(
    (
        Function(
            "weather",
            "Tells the weather. Only for cities.",
            (
                Slot("city", ("string",), "The city.\nIts name.", required=True),
                Slot("unit", ("string", "null"), options=("C", "F"), default="C", has_default=True),
                Slot("days", ("array",), schema={"type": "array", "items": {"type": "integer"}}),
            ),
        ),
        Function("stop"),
    ),
    "id",
)
WEATHER = CATALOG.functions[0]


def test_prefix_lists_the_functions() -> None:
    assert prompts.prefix(CATALOG).endswith("Tools:\n[0] weather(city, unit, days): Tells the weather\n[1] stop()\n")


def test_example_stands_before_the_tools() -> None:
    text = prompts.prefix(CATALOG, example=True)
    assert text.count("Tools:\n") == 2
    assert text.endswith("Answer: null\n\nTools:\n[0] weather(city, unit, days): Tells the weather\n[1] stop()\n")


def test_function_question() -> None:
    expected = "Question: Which tool is called next? Its number, 0 to 1, or none.\nAnswer:"
    assert prompts.function_question(CATALOG) == expected


@pytest.mark.parametrize(
    ("slot", "question"),
    [
        ("city", "Question: weather, value of city (string, required)? The city. Its name.\nAnswer:"),
        ("unit", "Question: weather, value of unit (string, optional)? Options: C, F. Default: C.\nAnswer:"),
        ("days", "Question: weather, value of days (array of integer, optional)?\nAnswer:"),
    ],
)
def test_slot_question(slot: str, question: str) -> None:
    found = WEATHER.slot(slot)
    assert found is not None
    assert prompts.slot_question(WEATHER, found) == question


def test_function_answers() -> None:
    assert [prompts.function_answer(CATALOG, name) for name in ("weather", "stop", None)] == [
        " 0",
        " 1",
        " none",
    ]


def test_conversation() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo? "}, {"type": "image_url"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "Rain", "tool_call_id": "1"},
        "no message",
    ]
    assert prompts.conversation(messages) == (
        'Conversation:\nSystem: Be brief.\nUser: Weather in Oslo?\nAssistant: weather {"city": "Oslo"}\nResult: Rain\n'
    )


def test_conversation_is_cut_from_the_left_in_steps() -> None:
    messages = [{"role": "user", "content": f"{i:04} {'x' * 90}"} for i in range(60)]
    first = prompts.conversation(messages).removeprefix("Conversation:\n")
    longer = prompts.conversation([*messages, {"role": "user", "content": "new"}])
    # 60 messages of 102 characters are 6120: 2120 too many, so three steps of 1000 go.
    assert len(first) == 3120
    assert longer == f"Conversation:\n{first}User: new\n"


def test_long_message_loses_its_middle() -> None:
    text = prompts.conversation([{"role": "tool", "content": "a" * 3000 + "z" * 3000}])
    assert text == f"Conversation:\nResult: {'a' * 1000} ... {'z' * 1000}\n"


def test_large_catalog_is_bounded_and_drops_descriptions_first() -> None:
    catalog = Catalog(tuple(Function(f"function_{i}", "d" * 200) for i in range(100)))
    text = prompts.prefix(catalog)
    assert "ddd" not in text
    assert "[99] function_99()\n" in text
    huge = Catalog(tuple(Function(f"function_{i:05}") for i in range(2000)))
    assert len(prompts.prefix(huge)) < prompts.MAX_CATALOG_CHARS + 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
MESSAGE = st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "function", "name", "x"]), JSON, max_size=5)


@given(st.lists(MESSAGE | JSON, max_size=4))
def test_any_message_becomes_text(messages: list[Any]) -> None:
    text = prompts.conversation(messages)
    assert text.startswith("Conversation:\n")
    assert text.endswith("\n")
