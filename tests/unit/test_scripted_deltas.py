import json
from typing import Any

import pytest

from ooospec_agents.testing import STREAM_SHAPES, Call, Reply, StreamShape
from ooospec_agents.testing.deltas import deltas

TWO = (Call("f", {"x": 1}, id="a"), Call("g", {}, id="b"))


def made(shape: StreamShape, *calls: Call, content: str | None = None) -> list[dict[str, Any]]:
    return list(deltas(Reply(content=content, calls=calls, shape=shape)))


@pytest.mark.parametrize("shape", [s for s in STREAM_SHAPES if s != "first_burst"])
def test_a_stream_starts_with_the_role(shape: StreamShape) -> None:
    assert made(shape, *TWO)[0] == {"role": "assistant", "content": ""}


def test_plain_sends_the_name_before_the_arguments() -> None:
    _, opening, *rest = made("plain", TWO[0])
    assert opening["tool_calls"] == [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    ]
    assert "".join(delta["tool_calls"][0]["function"]["arguments"] for delta in rest) == '{"x": 1}'


def test_a_first_burst_has_role_name_and_arguments_at_once() -> None:
    first = made("first_burst", TWO[0])[0]
    assert first["role"] == "assistant"
    assert first["tool_calls"] == [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f"}},
        {"index": 0, "function": {"arguments": '{"x"'}},
    ]


def test_interleaved_pieces_take_turns() -> None:
    pieces = [delta["tool_calls"][0]["index"] for delta in made("interleaved", *TWO)[2:]]
    assert pieces[:4] == [0, 1, 0, 1]


def test_split_surrogates_are_one_character_when_joined() -> None:
    pieces = made("split_surrogates", Call("f", {"x": "a😀"}))[2:]
    text = "".join(delta["tool_calls"][0]["function"]["arguments"] for delta in pieces)
    assert json.loads(text) == {"x": "a😀"}
    assert not any("\\ud83d\\ude00" in delta["tool_calls"][0]["function"]["arguments"] for delta in pieces)


def test_content_and_call_share_a_delta() -> None:
    assert made("content_and_call", TWO[0], content="hi")[1]["content"] == "hi"
