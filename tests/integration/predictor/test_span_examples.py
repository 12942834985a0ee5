"""What a request is turned into for training: labels, the function's choice, and an order that can be resumed."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from ooospec_agents.catalog import Catalog
from ooospec_agents.predictor.pieces import Pieces
from ooospec_agents.training.spans.examples import SpanExample, SpanStream, build
from ooospec_agents.training.spans.settings import SpanSettings
from ooospec_agents.training.traces import Call, Request, read_requests

SETTINGS = SpanSettings(passes=2, trace_passes=1)


@pytest.fixture
def pieces(bert: Path) -> Pieces:
    return Pieces(bert)


@pytest.fixture
def request_(data: Path) -> Request:
    return read_requests(data / "train.jsonl")[0]


def built(request: Request, pieces: Pieces, habits: bool = True) -> SpanExample:
    example = build(request, pieces, random.Random(0), SETTINGS, habits)
    assert example is not None
    return example


def test_a_value_is_labelled_where_it_stands(request_: Request, pieces: Pieces) -> None:
    example = built(request_, pieces)
    talk = pieces.conversation(request_.messages)
    city, days = example.slots
    assert [talk.between(*place) for place in city.parts[0]] == ["Rome"]
    assert [talk.between(*place) for place in days.parts[0]] == ["2", "2 days"][:1]
    assert example.chosen is not None
    assert len(example.texts) == 4


def test_a_value_that_stands_nowhere_is_something_else(request_: Request, pieces: Pieces) -> None:
    call = Call("weather", {"city": "Berlin"})
    assert built(replace(request_, calls=(call,)), pieces).slots[0].kind == 2


def test_a_slot_left_out_counts_only_where_the_target_left_it_out(request_: Request, pieces: Pieces) -> None:
    request = replace(request_, calls=(Call("weather", {"city": "Rome"}),))
    assert [label.kind for label in built(request, pieces).slots] == [1, 0]
    assert [label.kind for label in built(request, pieces, habits=False).slots] == [1]


def test_nothing_called_is_a_choice_of_its_own(request_: Request, pieces: Pieces) -> None:
    example = built(replace(request_, calls=()), pieces)
    assert (example.slots, example.chosen) == ((), 2)


def test_one_function_that_is_called_is_no_choice(request_: Request, pieces: Pieces) -> None:
    example = built(replace(request_, tools=request_.tools[:1]), pieces)
    assert (example.chosen, len(example.texts)) == (None, 2)


def test_a_stream_goes_on_where_it_was(data: Path, pieces: Pieces) -> None:
    requests = read_requests(data / "train.jsonl")
    stream = SpanStream(requests, {"r1": requests[1].calls}, pieces, SETTINGS)
    assert stream.size == 2 * 6 + 1
    whole = list(stream.read(0))
    assert list(stream.read(5)) == whole[5:]
    assert len({example.conversation for _, example in whole[:6]}) == 6


def test_a_token_knows_how_near_its_slots_words_are(data: Path, pieces: Pieces) -> None:
    request = read_requests(data / "train.jsonl")[0]
    talk = pieces.conversation([{"role": "user", "content": "rome city oslo days paris"}])
    function = Catalog.from_tools(list(request.tools)).functions[0]
    near = pieces.nearness(talk, pieces.slot(function, function.slots[0]))
    words = {talk.text[low:high]: row for (low, high), row in zip(talk.spans, near, strict=True)}
    assert words["oslo"][0] == 1.0  # "city" stands right before it
    assert words["rome"][1] == 1.0  # and right after this one
    assert words["paris"][0] == 0.75
    assert words["city"] == [0.0] * 4
