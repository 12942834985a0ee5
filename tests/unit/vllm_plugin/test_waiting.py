from dataclasses import dataclass

import pytest

from ooospec_agents.drafting.guesses import LexicalGuesses
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin import waiting as module
from ooospec_agents.vllm_plugin.messages import GuessesMessage, HintMessage, Open
from ooospec_agents.vllm_plugin.waiting import WaitingRoom


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def room(clock: Clock) -> WaitingRoom:
    return WaitingRoom(clock)


def announce(request_id: str) -> Open:
    return Open(RequestSpec(id=request_id))


def hint(request_id: str, source: str = "hint") -> HintMessage:
    return HintMessage(request_id, Hint(source=source))


def hinted(room: WaitingRoom, request_id: str) -> str | None:
    entry = room.get(request_id)
    return entry.hint.hint.source if entry is not None and entry.hint is not None else None


def test_newest_hint_counts(room: WaitingRoom) -> None:
    room.open(announce("r"))
    room.hint(hint("r", "first"))
    room.hint(hint("r", "second"))
    assert hinted(room, "r") == "second"


def test_guesses_count_for_rows_that_begin_later(room: WaitingRoom) -> None:
    guesses = LexicalGuesses((), {})
    room.guesses(GuessesMessage("r", guesses))
    room.open(announce("r"))
    room.hint(hint("r", "kept"))
    assert room.get("r").open.spec.guesses is None  # type: ignore[union-attr]
    room.guesses(GuessesMessage("r", guesses))
    assert room.get("r").open.spec.guesses is guesses  # type: ignore[union-attr]
    assert hinted(room, "r") == "kept"


def test_further_guesses_reach_rows_that_run(room: WaitingRoom) -> None:
    room.open(announce("r"))
    first = LexicalGuesses((Guess("f", 0.9, "lexical"),), {("f", "a"): ()})
    room.guesses(GuessesMessage("r", first))
    running = room.get("r").open.spec  # type: ignore[union-attr]
    room.guesses(GuessesMessage("r", LexicalGuesses((), {("g", "b"): ()})))
    assert running.guesses == LexicalGuesses(first.names, {("f", "a"): (), ("g", "b"): ()})


def test_early_hint_finds_its_request(room: WaitingRoom) -> None:
    room.hint(hint("r", "early"))
    room.open(announce("r"))
    assert hinted(room, "r") == "early"


def test_early_hint_expires(room: WaitingRoom, clock: Clock) -> None:
    room.hint(hint("r"))
    clock.now = 31.0
    room.expire()
    room.open(announce("r"))
    assert hinted(room, "r") is None


def test_request_that_never_runs_expires(room: WaitingRoom, clock: Clock) -> None:
    room.open(announce("r"))
    clock.now = 600.0
    room.expire()
    assert room.get("r") is not None
    clock.now = 601.0
    room.expire()
    assert room.get("r") is None


def test_hint_after_the_end_is_not_kept(room: WaitingRoom) -> None:
    room.open(announce("r"))
    room.close("r")
    room.hint(hint("r"))
    room.open(announce("r"))
    assert hinted(room, "r") is None


def test_numbers_are_bounded(room: WaitingRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REQUESTS", 2)
    monkeypatch.setattr(module, "MAX_EARLY_HINTS", 1)
    for name in "abc":
        room.open(announce(name))
    room.hint(hint("b"))
    for name in "xy":
        room.hint(hint(name))
    room.open(announce("x"))
    assert room.get("a") is None
    assert hinted(room, "x") is None  # "y" took its place
    assert room.get("c") is not None
