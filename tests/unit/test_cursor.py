"""Committed text read in pieces: the same however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.drafting.cursor import Cursor
from ooospec_agents.formats import FORMATS, Style

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(
    st.tuples(st.text(min_size=1, max_size=8), st.dictionaries(st.text(max_size=8), JSON, max_size=4)),
    min_size=1,
    max_size=3,
)
NAMES = st.sampled_from(["hermes", "fenced", "json", "array"])


def read(text: str, *, bare: bool = False) -> Cursor:
    cursor = Cursor(Style(), bare=bare, named="f" if bare else "")
    cursor.feed(text)
    return cursor


@given(name=NAMES, calls=CALLS)
def test_what_is_written_is_read_back(name: str, calls: list[tuple[str, dict[str, object]]]) -> None:
    segments = FORMATS[name].write(calls)
    cursor = read("".join(segment.text for segment in segments))
    assert [(call.name, call.values()) for call in cursor.calls] == calls
    values = [
        (segment.kind, segment.text, segment.slot) for segment in segments if segment.kind in ("name", "key", "value")
    ]
    assert [
        (item.kind, item.text, item.slot) for item in cursor.segments if item.kind in ("name", "key", "value")
    ] == values


@given(text=st.text() | st.text(alphabet='{}[]":, \\ntrue1<tool_call>`json'), cut=st.integers(0, 40))
def test_reading_in_pieces_is_reading_whole(text: str, cut: int) -> None:
    whole, pieces = read(text), Cursor(Style())
    for start in range(0, len(text), cut + 1):
        pieces.feed(text[start : start + cut + 1])
    assert pieces.all_segments() == whole.all_segments()
    assert (pieces.anchor, pieces.partial, pieces.level, pieces.calls) == (
        whole.anchor,
        whole.partial,
        whole.level,
        whole.calls,
    )


@given(text=st.text(alphabet='{}[]":, \\natme1<tool_call>`json'))
def test_segments_joined_are_the_text(text: str) -> None:
    assert "".join(segment.text for segment in read(text).all_segments()) == text


@pytest.mark.parametrize(
    ("text", "anchor", "partial", "level", "key"),
    [
        ("", "outside", "", 0, ""),
        ("<tool_call>\n", "outside", "<tool_call>\n", 0, ""),
        ('<tool_call>\n{"na', "key", '"na', 1, ""),
        ('<tool_call>\n{"name": "get', "value", ' "get', 1, "name"),
        ('<tool_call>\n{"name": "get"', "after", "", 1, "name"),
        ('<tool_call>\n{"name": "f", "arguments": {', "key", "", 2, ""),
        ('<tool_call>\n{"name": "f", "arguments": {"a": [1, ', "value", " [1, ", 2, "a"),
        ('<tool_call>\n{"name": "f", "arguments": {"a": 12', "value", " 12", 2, "a"),
        ('<tool_call>\n{"name": "f", "arguments": {"a": 12,', "key", "", 2, ""),
        ('<tool_call>\n{"name": "f", "arguments": {"a": 12}', "after", "", 1, ""),
        ('<tool_call>\n{"name": "f", "arguments": {"a": 12}}\n</', "outside", "\n</", 0, ""),
    ],
)
def test_where_the_text_stands(text: str, anchor: str, partial: str, level: int, key: str) -> None:
    cursor = read(text)
    assert (cursor.anchor, cursor.partial, cursor.level) == (anchor, partial, level)
    if level:
        assert cursor.key == key


def test_text_before_a_call_is_text() -> None:
    cursor = read('I will look.\n```json\n{"name": "f", "arguments": {"a": 1}}\n```')
    assert next((item.kind, item.text) for item in cursor.all_segments()) == (
        "text",
        "I will look.\n```json\n",
    )
    assert cursor.calls[0].values() == {"a": 1}


def test_a_brace_in_prose_opens_no_call() -> None:
    assert read('Use {"name": "f"} as the body.').calls == []


def test_arguments_alone_are_those_of_the_named_function() -> None:
    cursor = read('{"a": "b"}', bare=True)
    assert (cursor.calls[0].name, cursor.calls[0].values(), cursor.calls[0].complete) == (
        "f",
        {"a": "b"},
        True,
    )


def test_arguments_before_the_name() -> None:
    cursor = read('{"arguments": {"x": {"y": 1}}, "name": "f"}')
    assert (cursor.calls[0].name, cursor.calls[0].values(), cursor.calls[0].complete) == (
        "f",
        {"x": {"y": 1}},
        True,
    )


def test_layout_is_learned() -> None:
    style = Style()
    Cursor(style).feed('{\n  "name" : "f"')
    Cursor(style).feed('{\n  "name": "f",\n  "arguments": {\n    "a":1')
    assert style.gap("open", 2) == "\n    "
    assert style.gap("colon", 2) == ""


def test_of_text_before_a_call_only_the_mark_is_an_opening() -> None:
    assert read('I will look.\n```json\n{"name": "f"}').first_opening == "```json\n"
    assert read('\n{"name": "f"}').first_opening == "\n"
    assert read('<tool_call>\n{"name": "f"}').first_opening == "<tool_call>\n"
