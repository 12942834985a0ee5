"""Whatever a target writes and wherever it is cut, and whatever a hint says: no fault, no draft that kills an engine."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("zmq")

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.guesses import LexicalGuesses
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.formats import FORMATS
from ooospec_agents.hint import CallHint, Hint, SlotHint
from ooospec_agents.testing.engine import DRAFT_TOKENS, VOCABULARY, ScriptedEngine
from ooospec_agents.vllm_plugin.channel import ApiChannel

NAMES = ("find", "find_all", "tell")
SLOTS = ("a", "b", "c d")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "string", "enum": ["x", 'y"']},
                    "b": {"type": ["array", "null"], "items": {"type": "object"}},
                    "c d": {"type": "number", "default": 1.5},
                },
            },
        },
    }
    for name in NAMES
]
CATALOG = Catalog.from_tools(TOOLS)

characters = st.characters(exclude_characters="\0", exclude_categories=("Cs",))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(characters, max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(characters, max_size=4), inner, max_size=3),
    max_leaves=6,
)
calls = st.tuples(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(SLOTS), json_values))


@st.composite
def outputs(draw: Any, wire_format: str) -> str:
    """Calls as they should be, cut and changed anywhere; or any text."""
    if draw(st.integers(0, 4)) == 0:
        return str(draw(st.text(characters, max_size=60)))
    segments = FORMATS[wire_format].write(draw(st.lists(calls, min_size=1, max_size=2)))
    text = draw(st.text(characters, max_size=6)) + "".join(segment.text for segment in segments)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.integers(0, 5))
        text = (
            text[:at] + draw(st.sampled_from(["", '"', "{", "}", "\\", "\n", ",", "é", "]", "<"])) + text[at + gone :]
        )
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


hints = st.builds(
    Hint,
    calls=st.lists(
        st.builds(
            CallHint,
            name=st.sampled_from((*NAMES, "unknown")),
            confidence=st.floats(0, 1),
            slots=st.dictionaries(
                st.sampled_from((*SLOTS, "unknown")),
                st.builds(SlotHint, value=json_values, confidence=st.floats(0, 1), absent=st.booleans()),
            ),
            complete=st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    no_call=st.floats(0, 1),
    output=st.text(characters, max_size=20),
)


@st.composite
def requests(draw: Any) -> tuple[str, RequestSpec, Hint | None, int | None]:
    wire_format = draw(st.sampled_from(sorted(FORMATS)))
    spec = RequestSpec(
        id="r",
        catalog=CATALOG,
        wire_format=wire_format,
        method=draw(st.sampled_from(("toolspec", "lexical", "ooospec"))),
        named=draw(st.sampled_from(("", *NAMES))),
        required=draw(st.booleans()),
        conversation=conversation_text([{"role": "user", "content": draw(st.text(characters, max_size=80))}]),
    )
    limit = draw(st.none() | st.integers(1, 40))
    return draw(outputs(wire_format)), spec, draw(st.none() | hints), limit


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEngine]:
    with tempfile.TemporaryDirectory(prefix="ooo") as folder:
        monkeypatch.setenv("OOOSPEC_SOCKET_DIR", folder)
        made = ScriptedEngine(step_s=0.0)
        yield made
        made.close()


async def decode(engine: ScriptedEngine, request: tuple[str, RequestSpec, Hint | None, int | None], number: int) -> str:
    text, spec, hint, limit = request
    spec = replace(spec, id=f"r{number}")
    road = ApiChannel()
    assert road.open(spec)
    if spec.method != "toolspec":
        assert road.guesses(spec.id, LexicalGuesses.of(spec.catalog, spec.conversation))
    if hint is not None:
        assert road.hint(spec.id, hint)
    written = "".join([piece async for piece in engine.generate(text, {"ooospec_id": spec.id}, limit)])
    road.close()
    return written


def fuzz(engine: ScriptedEngine, numbers: Iterator[int], request: Any) -> None:
    written = asyncio.run(decode(engine, request, next(numbers)))
    text, _, _, limit = request
    assert written == (text if limit is None else text[:limit])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=requests())
def test_nothing_that_is_written_harms_the_engine(engine: ScriptedEngine, request: Any) -> None:
    fuzz(engine, iter((engine.steps,)), request)
    assert engine.proposer._fault_counts == {}
    assert engine.invalid == 0


def test_most_requests_are_thought_about_before_their_first_token(engine: ScriptedEngine) -> None:
    """Else the test above is none of `foresight.py`."""
    taken: list[bool] = []
    foresight = engine.proposer._foresight
    assert foresight is not None
    take = foresight.take

    def counted(*asked: Any) -> Any:
        thought = take(*asked)
        taken.append(thought is not None)
        return thought

    foresight.take = counted  # type: ignore[method-assign]
    request = ("no call", RequestSpec(id="r", catalog=CATALOG, method="lexical", wire_format="hermes"), None, None)
    for number in range(10):
        asyncio.run(decode(engine, request, number))
    assert sum(taken) > 5


def test_an_invalid_draft_would_be_seen(engine: ScriptedEngine) -> None:
    def propose(sampled: list[list[int]]) -> list[list[int]]:
        return [[VOCABULARY] for _ in sampled]

    engine.proposer.propose = propose  # type: ignore[assignment,method-assign]
    asyncio.run(decode(engine, ("ab", RequestSpec(id="r"), None, None), 0))
    assert engine.invalid > 0


def test_too_long_a_draft_would_be_seen(engine: ScriptedEngine) -> None:
    def propose(sampled: list[list[int]]) -> list[list[int]]:
        return [[1] * (DRAFT_TOKENS + 1) for _ in sampled]

    engine.proposer.propose = propose  # type: ignore[assignment,method-assign]
    asyncio.run(decode(engine, ("ab", RequestSpec(id="r"), None, None), 0))
    assert engine.invalid > 0
