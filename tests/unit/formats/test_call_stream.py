"""What is a call and what is text, read whole and cut anywhere."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.formats.call_events import Arguments, CallStart, Text
from ooospec_agents.formats.call_stream import CallStream

NAMES = ("get_weather", "send_mail")
Calls = list[tuple[str, str]]


def read(pieces: list[str], names: tuple[str, ...] = NAMES) -> tuple[str, Calls]:
    stream = CallStream(names)
    events = [event for piece in pieces for event in stream.feed(piece)]
    last = stream.finish()
    assert all(isinstance(event, Text) for event in last)
    text = "".join(event.text for event in [*events, *last] if isinstance(event, Text))
    calls: list[tuple[str, str]] = []
    for event in events:
        if isinstance(event, CallStart):
            assert event.index == len(calls)
            calls.append((event.name, ""))
        elif isinstance(event, Arguments):
            name, arguments = calls[event.index]
            calls[event.index] = (name, arguments + event.text)
    return text, calls


W = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
M = '{"name": "send_mail", "parameters": {}}'
WEATHER = ("get_weather", '{"city": "Paris"}')
MAIL = ("send_mail", "{}")

CASES: dict[str, tuple[str, str, Calls]] = {
    "fenced": (f"```json\n{W}\n```", "", [WEATHER]),
    "fenced, indented": (
        '```json\n{\n  "name": "get_weather",\n  "arguments": {\n    "city": "}\\"{"\n  }\n}\n```',
        "",
        [("get_weather", '{\n    "city": "}\\"{"\n  }')],
    ),
    "text around": (f"Sure:\n\n```json\n{W}\n```\nDone.\n", "Sure:\nDone.", [WEATHER]),
    "list in a fence": (f"```json\n[{W}, {M}]\n```", "", [WEATHER, MAIL]),
    "several in a fence": (f"```json\n{W}\n{M}\n```", "", [WEATHER, MAIL]),
    "two fences": (f"```json\n{W}\n```\n```\n{M}\n```", "", [WEATHER, MAIL]),
    "fence not closed": (f"```json\n{W}", "", [WEATHER]),
    "bare": (W, "", [WEATHER]),
    "bare list": (f"[\n  {W},\n  {M}\n]", "", [WEATHER, MAIL]),
    "bare lines": (f"{W}\n{M}", "", [WEATHER, MAIL]),
    "markup": (f"<tool_call>\n{W}\n</tool_call>\n<tool_call>{M}</tool_call>", "", [WEATHER, MAIL]),
    "markup in a sentence": (f"I call <tool_call>{W}</tool_call> now", "I call now", [WEATHER]),
    "markup, any name": ('<tool_call>{"name": "x", "arguments": {}}</tool_call>', "", [("x", "{}")]),
    "markup without arguments": ('<tool_call>{"name": "x"}</tool_call>', "", [("x", "{}")]),
    "markup, text as arguments": ('<tool_call>{"name": "x", "arguments": "é"}</tool_call>', "", [("x", '"é"')]),
    "markup, list as arguments": ('<tool_call>{"name": "x", "arguments": [1, 2]}</tool_call>', "", [("x", "[1, 2]")]),
    "markup, number as arguments": ('<tool_call>{"name": "x", "arguments": 12}</tool_call>', "", [("x", "12")]),
    "bare, number as arguments": (
        '{"name": "send_mail", "arguments": 12}',
        '{"name": "send_mail", "arguments": 12}',
        [],
    ),
    "bare, word as arguments": ('{"name": "send_mail", "arguments": no}', '{"name": "send_mail", "arguments": no}', []),
    "markup never opened": (f"{W}\n</tool_call>", "", [WEATHER]),
    "brace forgotten": (f"<tool_call>\n{W[:-1]}\n</tool_call>", "", [WEATHER]),
    "arguments first": (
        '{"arguments": {"name": "x"}, "name": "send_mail"}',
        "",
        [("send_mail", '{"name": "x"}')],
    ),
    "arguments as text": (
        '{"name": "send_mail", "arguments": "{\\"a\\": 1}"}',
        "",
        [("send_mail", '{"a": 1}')],
    ),
    "arguments null": ('{"name": "send_mail", "arguments": null}', "", [MAIL]),
    "key after arguments": ('{"name": "send_mail", "arguments": {}, "id": "}"}', "", [MAIL]),
    "raw line break": (
        '{"name": "send_mail", "arguments": {"a": "x\ny"}}',
        "",
        [("send_mail", '{"a": "x\\ny"}')],
    ),
    "cut in the arguments": (
        '```json\n{"name": "send_mail", "arguments": {"a": "x',
        "",
        [("send_mail", '{"a": "x')],
    ),
    "ordinary block": (
        '```json\n{"users": [{"id": 1}]}\n```\n',
        '```json\n{"users": [{"id": 1}]}\n```\n',
        [],
    ),
    "unknown name": (
        '```json\n{"name": "fly", "arguments": {}}\n```',
        '```json\n{"name": "fly", "arguments": {}}\n```',
        [],
    ),
    "name alone": ('{"name": "send_mail"}', '{"name": "send_mail"}', []),
    "call inside data": (f'{{"calls": [\n{W}\n]}}', f'{{"calls": [\n{W}\n]}}', []),
    "call in another block": (f"```python\n{W}\n```", f"```python\n{W}\n```", []),
    "call in a sentence": (f"as in {W}", f"as in {W}", []),
    "block, then call": (f"```python\nx = {{}}\n```\n{W}", "```python\nx = {}\n```", [WEATHER]),
    "link": ("[a](b) and `c`\n", "[a](b) and `c`\n", []),
    "blank": ("\n  \n", "\n  \n", []),
    "cut in the name": ('{"name": "send_m', '{"name": "send_m', []),
    "half a tag": ("2 <tool_ca", "2 <tool_ca", []),
}


@pytest.mark.parametrize("case", CASES)
def test_reads_calls_and_text(case: str) -> None:
    text, expected_text, expected_calls = CASES[case]
    assert read([text]) == (expected_text, expected_calls)


@pytest.mark.parametrize("case", CASES)
def test_cut_anywhere_reads_the_same(case: str) -> None:
    text, *expected = CASES[case]
    for cut in range(len(text) + 1):
        assert read([text[:cut], text[cut:]]) == tuple(expected)
    assert read(list(text)) == tuple(expected)


def test_without_bound_functions_all_text_is_text_at_once() -> None:
    assert CallStream(()).feed(f"```json\n{W}") == [Text(f"```json\n{W}")]


def test_arguments_come_before_the_call_is_complete() -> None:
    stream = CallStream(NAMES)
    assert stream.feed('{"name": "send_mail", "arguments": {"a"') == [
        CallStart(0, "send_mail"),
        Arguments(0, '{"a"'),
    ]
    assert stream.feed(": 1}") == [Arguments(0, ": 1}")]


FRAGMENTS = [
    "```json\n",
    "```",
    "```py\n",
    "\n",
    "<tool_call>",
    "</tool_call>",
    "[",
    "]",
    "{",
    "}",
    ",",
    '"',
    W,
    M,
    "x",
    "<",
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join), st.data())
def test_any_text_reads_the_same_however_it_is_cut(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    assert read([text[:cut], text[cut:]]) == read([text])


@given(st.lists(st.sampled_from([f for f in FRAGMENTS if f not in (W, M)]), max_size=10).map("".join))
def test_text_without_a_call_is_unchanged(text: str) -> None:
    assert read([text]) == (text, [])


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)))
def test_arguments_arrive_as_written(arguments: dict[str, object]) -> None:
    written = json.dumps(arguments, ensure_ascii=False)
    text, [(name, read_back)] = read(list(f'```json\n{{"name": "send_mail", "arguments": {written}}}\n```'))
    assert (text, name, json.loads(read_back)) == ("", "send_mail", arguments)
