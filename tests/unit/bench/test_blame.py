from __future__ import annotations

import pytest

from ooospec_agents.bench.blame import Reading, blame_difference, knew
from ooospec_agents.hint import Hint

OUTPUT = '<tool_call>\n{"name": "book", "arguments": {"place": "Oslo", "guests": 4}}\n</tool_call>'


def blame(expected: str, came: str = OUTPUT, *, ended: bool = False):
    mine = Reading.of(expected, "hermes", ended=ended)
    return blame_difference(mine, Reading.of(came, "hermes", ended=True), "schema")


@pytest.mark.parametrize(
    ("expected", "cause", "slot"),
    [
        (OUTPUT.replace("book", "cook"), "wrong name", ""),
        (OUTPUT.replace("Oslo", "Olso"), "wrong value", "place"),
        (OUTPUT.replace("Oslo", "Oslo, Norway"), "wrong value", "place"),
        (OUTPUT.replace("4", '"4"'), "wrong value", "guests"),
        (OUTPUT.replace("Oslo", "\\u004fslo"), "layout", "place"),
        (OUTPUT.replace(', "guests"', ',"guests"'), "layout", ""),
        (OUTPUT.replace('{"name"', '{\n  "name"'), "layout", ""),
        (OUTPUT.replace('"place": "Oslo", "guests": 4', '"guests": 4, "place": "Oslo"'), "order", "place"),
        (OUTPUT.replace('"guests": 4', '"guests": 4, "seat": 1'), "slots", ""),
        (OUTPUT.replace(', "guests": 4', ""), "slots", ""),
        (OUTPUT.replace('"guests"', '"gates"'), "slots", "guests"),
        (OUTPUT.replace("</tool_call>", '</tool_call>\n<tool_call>\n{"name": "book'), "end", ""),
        (OUTPUT.replace("<tool_call>", "I will"), "text", ""),
    ],
)
def test_a_difference_is_named(expected: str, cause: str, slot: str) -> None:
    found = blame(expected, ended=True)
    assert found.cause == cause
    assert slot in ("", found.slot)
    assert found.source == "schema"


@pytest.mark.parametrize(
    ("written", "cause"),
    [
        ("<tool_call>\n", "missing name"),
        ('<tool_call>\n{"name":', "missing name"),
        ('<tool_call>\n{"name": "book", "arguments": {', "slots"),
        ('<tool_call>\n{"name": "book", "arguments": {"place":', "missing value"),
        ('<tool_call>\n{"name": "book", "arguments": {"place": "Os', "missing value"),
        ('<tool_call>\n{"name": "book", "arguments": {"place": "Oslo", "guests": 4}}', "end"),
    ],
)
def test_a_draft_that_stopped_lacked_what_came_next_and_nobody_was_wrong(written: str, cause: str) -> None:
    found = blame(written)
    assert found.source == ""
    assert found.cause == cause


def test_a_call_where_text_came_and_text_where_a_call_came() -> None:
    assert blame(OUTPUT, "Where shall it be?").cause == "text"
    assert blame("Where sh", "Where are you?").cause == "text"


def test_text_after_a_call_is_an_end_that_did_not_come() -> None:
    assert blame(OUTPUT, OUTPUT + "\nDone.", ended=True).cause == "end"


def test_an_unfinished_output_is_read_to_its_last_letter() -> None:
    for length in range(len(OUTPUT) + 1):
        reading = Reading.of(OUTPUT[:length], "hermes")
        assert "".join(segment.text for _, segment in reading.segments) == OUTPUT[:length]
        if length:
            assert reading.at(length - 1) is not None


def test_a_hint_knew_a_value_or_it_did_not() -> None:
    came = Reading.of(OUTPUT, "hermes", ended=True)
    hint = Hint.of_call("book", {"place": "Oslo", "guests": 5})
    assert knew(hint, came, OUTPUT.index("book"))
    assert knew(hint, came, OUTPUT.index("Oslo"))
    assert not knew(hint, came, OUTPUT.index("4"))
    assert not knew(hint, came, 0)
