"""The hint's text, and what the edge refuses: whatever passes can be written by every format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ooospec_agents.formats import FORMATS
from ooospec_agents.hint import MAX_CALLS, MAX_HINT_BYTES, MAX_OUTPUT_CHARS, MAX_SLOTS, Hint, HintError


def of_value(raw: str) -> str:
    """The text of a hint whose only value is given as raw JSON."""
    return f'{{"calls": [{{"name": "f", "slots": {{"x": {{"value": {raw}}}}}}}]}}'


def test_what_is_written_is_read_back() -> None:
    hint = Hint.of_call("f", {"x": 'é "q" 😀', "y": [1, None]})
    assert Hint.parse(hint.to_json()) == hint


def test_half_a_character_costs_its_slot_only() -> None:
    read = Hint.parse(Hint.of_call("f", {"x": "a\ud800", "y": 1}).to_json())
    assert {name: slot.value for name, slot in read.calls[0].slots.items()} == {"x": "a?", "y": 1}


def of_size(size: int) -> str:
    head, tail = '{"calls": [{"name": "f", "slots": {"x": {"value": "', '"}}}]}'
    return head + "x" * (size - len(head) - len(tail)) + tail


@pytest.mark.parametrize("kind", [str, bytes])
def test_the_size_is_bounded(kind: type) -> None:
    for size, read in ((MAX_HINT_BYTES, True), (MAX_HINT_BYTES + 1, False)):
        text: Any = of_size(size) if kind is str else of_size(size).encode()
        if read:
            Hint.parse(text)
        else:
            with pytest.raises(HintError, match=f"hint of {size} bytes refused"):
                Hint.parse(text)


@pytest.mark.parametrize(
    ("most", "body"),
    [
        (MAX_CALLS, lambda n: {"calls": [{"name": "f"}] * n}),
        (MAX_CALLS, lambda n: {"alternatives": [{"name": "f"}] * n}),
        (MAX_SLOTS, lambda n: {"calls": [{"name": "f", "slots": {str(i): {} for i in range(n)}}]}),
        (MAX_OUTPUT_CHARS, lambda n: {"output": "x" * n}),
        (32, lambda n: {"source": "x" * n}),
        (256, lambda n: {"calls": [{"name": "x" * n}]}),
    ],
    ids=["calls", "alternatives", "slots", "output", "source", "name"],
)
def test_the_numbers_are_bounded(most: int, body: Any) -> None:
    Hint.parse(json.dumps(body(most)))
    with pytest.raises(HintError, match="hint refused at"):
        Hint.parse(json.dumps(body(most + 1)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"calls": 1}',
        '{"unknown": 1}',
        '{"no_call": 1.5}',
        '{"no_call": NaN}',
        '{"calls": [{"name": ""}]}',
        of_value("NaN"),
        of_value("-Infinity"),
        of_value("1e999"),
        of_value('[{"a": 1e999}]'),
        of_value("9" * 5000),
        of_value("[" * 17 + "]" * 17),
        of_value("[" * 5000 + "]" * 5000),
    ],
)
def test_what_no_format_could_write_is_refused(text: str) -> None:
    with pytest.raises(HintError, match="hint refused at"):
        Hint.parse(text)


@pytest.mark.parametrize(
    "raw", ["null", "1.5", "-3", '"x"', "[1, [2]]", '{"a": {"b": []}}', "9" * 4000, "[" * 16 + "]" * 16]
)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_what_passes_every_format_writes(name: str, raw: str) -> None:
    (call,) = Hint.parse(of_value(raw)).calls
    assert FORMATS[name].write([(call.name, {key: slot.value for key, slot in call.slots.items()})])
