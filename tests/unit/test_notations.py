"""Committed text of every notation read in pieces: the same however it is cut."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.drafting.cursor import Cursor
from ooospec_agents.drafting.notations import cursor_for
from ooospec_agents.formats import FORMATS, Style
from ooospec_agents.formats.pythonic import PythonStyle, python_value
from ooospec_agents.formats.qwen_xml import XmlStyle, xml_value

NEW = ["llama3_json", "mistral", "mistral_array", "mistral_json", "pythonic", "lfm2", "olmo3", "qwen3_coder", "mimo"]
WORD = st.from_regex(r"[a-z_][A-Za-z0-9_]{0,7}", fullmatch=True)
TEXT = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(st.tuples(WORD, st.dictionaries(WORD, JSON, max_size=4)), min_size=1, max_size=3)
MARKUP = st.lists(
    st.sampled_from(
        [
            *("<tool_call>", "\n", "<function=", "f", ">", "<parameter=", "a", "</parameter>", "</function>"),
            *("</tool_call>", "[", "]", "(", ")", "=", ",", '"', "'", "\\", "{", "}", ":", " ", "1", "None", "é"),
            *(
                "[TOOL_CALLS]",
                "[ARGS]",
                "[CALL_ID]",
                '"name"',
                '"arguments"',
                ";",
                "<|python_tag|>",
                "<|tool_call_start|>",
            ),
        ]
    ),
    max_size=25,
).map("".join)


def reader(name: str) -> Cursor:
    return cursor_for(FORMATS[name], FORMATS[name].profile.style())


def read(name: str, text: str) -> Cursor:
    cursor = reader(name)
    cursor.feed(text)
    return cursor


def parts(segments: list[Any]) -> list[tuple[str, str, str]]:
    return [
        (item.kind, item.text, item.slot) for item in segments if item.kind in ("name", "key", "value") and item.text
    ]


@given(name=st.sampled_from(NEW), calls=CALLS)
def test_what_is_written_is_read_back(name: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    segments = FORMATS[name].write(calls)
    cursor = read(name, "".join(segment.text for segment in segments))
    assert parts(cursor.segments) == parts(segments)
    assert all(call.complete for call in cursor.calls)
    style = cursor.style
    assert [
        (call.name, {slot: style.render(value) for slot, value in call.values().items()}) for call in cursor.calls
    ] == [(called, {slot: style.render(value) for slot, value in arguments.items()}) for called, arguments in calls]


@given(name=st.sampled_from(NEW), text=MARKUP | st.text(max_size=60), cut=st.integers(1, 12))
def test_reading_in_pieces_is_reading_whole(name: str, text: str, cut: int) -> None:
    whole, pieces = read(name, text), reader(name)
    for start in range(0, len(text), cut):
        pieces.feed(text[start : start + cut])
    assert pieces.all_segments() == whole.all_segments()
    assert (pieces.anchor, pieces.partial, pieces.level, pieces.key, pieces.calls, pieces.broken, pieces.style) == (
        whole.anchor,
        whole.partial,
        whole.level,
        whole.key,
        whole.calls,
        whole.broken,
        whole.style,
    )


@given(name=st.sampled_from(NEW), text=MARKUP)
def test_segments_joined_are_the_text(name: str, text: str) -> None:
    assert "".join(segment.text for segment in read(name, text).all_segments()) == text


@pytest.mark.parametrize(
    ("name", "text", "anchor", "partial", "level", "key"),
    [
        ("mistral", "[TOOL_CALLS]get", "outside", "[TOOL_CALLS]get", 0, ""),
        ("mistral", '[TOOL_CALLS]get[ARGS]{"a"', "key", '"a"', 2, "a"),
        ("mistral", '[TOOL_CALLS]get[CALL_ID]x1[ARGS]{"a": 1', "value", " 1", 2, "a"),
        ("mistral", '[TOOL_CALLS]get{"a": 1, ', "key", " ", 2, ""),
        ("mistral", '[TOOL_CALLS][{"na', "key", '"na', 1, ""),
        ("mistral_json", '[{"name": "f", "arguments": {', "key", "", 2, ""),
        ("llama3_json", '<|python_tag|>{"name": "f", "pa', "key", ' "pa', 1, ""),
        ("pythonic", "[get", "outside", "[get", 0, ""),
        ("pythonic", "[get(pla", "key", "pla", 2, ""),
        ("pythonic", "[get(place='O\\'B", "value", "'O\\'B", 2, "place"),
        ("pythonic", "[get(place=('a', ')'), ", "key", " ", 2, ""),
        ("pythonic", "[get(a=1)", "outside", "", 0, ""),
        ("qwen3_coder", "<tool_call>\n<function=get>\n<para", "key", "\n<para", 2, ""),
        ("qwen3_coder", "<tool_call>\n<function=get>\n<parameter=a>\n  x\n</par", "value", "\n  x\n</par", 2, "a"),
        ("qwen3_coder", "<function=get>\n<parameter=a>\nx\n</parameter>\n", "after", "\n", 2, "a"),
        ("qwen3_coder", "<function=get>\n</function>\n</tool", "outside", "\n</tool", 0, ""),
    ],
)
def test_where_the_text_stands(name: str, text: str, anchor: str, partial: str, level: int, key: str) -> None:
    cursor = read(name, text)
    assert (cursor.anchor, cursor.partial, cursor.level, cursor.key) == (anchor, partial, level, key)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pythonic", "Call print(1) or see [1](x)."),
        ("pythonic", "f(a=1)"),
        ("mistral", 'Use [TOOL_CALLS] and then {"a": 1}'),
        ("llama3_json", 'The body is {"name": "f"}'),
        ("qwen3_coder", "Write <function and <parameter=a>."),
    ],
)
def test_prose_is_no_call(name: str, text: str) -> None:
    assert read(name, text).calls == []


@pytest.mark.parametrize(
    ("name", "text", "opening"),
    [
        ("pythonic", "Sure: [f(a=1)]", "["),
        ("pythonic", "<|python_start|>[f(a=1)]<|python_end|>", "<|python_start|>["),
        ("lfm2", "<|tool_call_start|>[f(a=1)]<|tool_call_end|>", "<|tool_call_start|>["),
        ("olmo3", "<function_calls>\nf(a=1)\n</function_calls>", "<function_calls>\n"),
        ("mistral", 'Sure.[TOOL_CALLS]f[ARGS]{"a": 1}', "[TOOL_CALLS]"),
        ("mistral", '[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}]', "[TOOL_CALLS] ["),
        ("llama3_json", '<|python_tag|>{"name": "f", "parameters": {"a": 1}}', "<|python_tag|>"),
        (
            "qwen3_coder",
            "Sure.\n<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n",
            "<tool_call>\n<function=",
        ),
    ],
)
def test_the_opening_of_a_call_is_known(name: str, text: str, opening: str) -> None:
    cursor = read(name, text)
    assert (cursor.first_opening, cursor.calls[0].name, cursor.calls[0].values()) == (opening, "f", {"a": 1})


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("'a \"b\" \\'c\\''", "a \"b\" 'c'"),
        (r'"\x41\n\\d"', "A\n\\d"),
        (r"'\d'", "\\d"),
        ("[True, None, ('x', -1.5)]", [True, None, ["x", -1.5]]),
        ("{'true': false}", {"true": False}),
        ("'True'", "True"),
    ],
)
def test_python_literals_are_read(raw: str, value: object) -> None:
    assert python_value(raw) == value


@given(value=JSON, quote=st.sampled_from("'\""))
def test_python_literals_are_what_is_meant_in_either_quotes(value: object, quote: str) -> None:
    assert repr(python_value(PythonStyle(quote=quote).render(value))) == repr(value)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("3", 3),
        ("007", "007"),
        ("1e3", "1e3"),
        ("True", True),
        ("[1, 2]", [1, 2]),
        ("[1,2]", "[1,2]"),
        ("", ""),
        ('"a"', '"a"'),
    ],
)
def test_what_a_parameter_holds_is_json_if_it_would_be_written_so(raw: str, value: object) -> None:
    assert xml_value(raw) == value


def test_quotes_words_and_breaks_are_learned() -> None:
    python = read("pythonic", "[f(a='x', b=true, c = 1)]").style
    assert isinstance(python, PythonStyle)
    assert (python.quote, python.render([True, "y"])) == ("'", "[true, 'y']")
    xml = read("qwen3_coder", "<function=f><parameter=a>True</parameter></function>").style
    assert isinstance(xml, XmlStyle)
    assert (xml.render(False), xml.gap("colon", 2), xml.gap("open", 2)) == ("False", "", "")
    assert xml.render({"a": [False]}) == '{"a": [false]}'


def test_a_style_of_its_own_is_copied_as_such() -> None:
    assert type(PythonStyle(quote="'").copy()) is PythonStyle
    assert type(FORMATS["hermes"].profile.style()) is Style
