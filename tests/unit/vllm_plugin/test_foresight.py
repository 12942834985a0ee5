"""Thinking ahead: the thread reads the mail, the rows find it done; and nothing is lost where it is not."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.drafter import Drafter
from ooospec_agents.drafting.guesses import LexicalGuesses
from ooospec_agents.drafting.memory import Stores
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.formats import FORMATS
from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin.messages import GuessesMessage, HintMessage, Mail, Open

pytest.importorskip("zmq")

from ooospec_agents.testing.engine import CharacterCodec
from ooospec_agents.vllm_plugin import foresight as module
from ooospec_agents.vllm_plugin.foresight import Foresight

STOPS = (0,)
PATIENCE_S = 20.0
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}}}
CATALOG = Catalog.from_tools([TOOL])
CONVERSATION = "user: What is the weather in Bonn?"
CALL = "".join(segment.text for segment in FORMATS["hermes"].write([("weather", {"city": "Bonn"})]))


class Inbox:
    """A worker's inbox without sockets."""

    def __init__(self) -> None:
        self.dropped = 0
        self._letters: list[Mail] = []
        self._lock = threading.Lock()
        self._read, self._write = os.pipe()

    def post(self, *mail: Mail) -> None:
        with self._lock:
            self._letters += mail
            os.write(self._write, b"." * len(mail))

    def mail(self, most: int = 256) -> list[Mail]:
        with self._lock:
            letters, self._letters = self._letters[:most], self._letters[most:]
            if letters:
                os.read(self._read, len(letters))
        return letters

    def fileno(self) -> int:
        return self._read


class Office:
    """A foresight, its inbox, and what it makes and complains of."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.stores = Stores()
        self.faults: list[str] = []
        self.breaks = False
        self.reading = False
        self.foresight = Foresight(self.inbox, self.make, self.fault)  # type: ignore[arg-type]
        self.read, self.foresight._read = self.foresight._read, self._read  # type: ignore[method-assign]

    def _read(self) -> bool:
        self.reading = True
        try:
            return self.read()
        finally:
            self.reading = False

    def make(self, spec: RequestSpec, lora: str, stops: Sequence[int]) -> Drafter:
        if self.breaks:
            msg = "broken"
            raise RuntimeError(msg)
        return Drafter(spec, CharacterCodec(), self.stores, lora=lora, stop_ids=stops, ahead=True)

    def fault(self, where: str, error: Exception) -> None:
        self.faults.append(f"{where}: {error}")

    def announce(self, request_id: str, **fields: Any) -> Open:
        given = {"method": "ooospec", "wire_format": "hermes", "catalog": CATALOG, "required": True}
        spec = RequestSpec(id=request_id, conversation=CONVERSATION, **{**given, **fields})
        opened = Open(spec)
        self.inbox.post(opened)
        if spec.method in ("lexical", "ooospec"):
            self.inbox.post(GuessesMessage(request_id, LexicalGuesses.of(CATALOG, CONVERSATION)))
        return opened

    def settle(self) -> None:
        """Wait until the thread has done all that was posted."""
        wait_for(lambda: not self.inbox._letters and not self.reading)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the thread did not come to it"
        time.sleep(0.002)


@contextmanager
def an_office() -> Iterator[Office]:
    office = Office()
    try:
        yield office
    finally:
        office.foresight.close()
        assert not office.foresight._thread.is_alive()


@pytest.fixture
def office() -> Iterator[Office]:
    with an_office() as made:
        made.foresight.take(Open(RequestSpec(id="the one before")), "", STOPS)
        yield made


def drafted(drafter: Any, written: str) -> str:
    drafter.commit([ord(letter) for letter in written])
    return "".join(map(chr, drafter.draft(200).tokens)).rstrip("\0")


def test_the_first_draft_is_there_before_the_first_token_and_is_the_one_that_would_be_made_then(office: Office) -> None:
    opened = office.announce("r")
    office.settle()
    thought = office.foresight.take(opened, "", STOPS)
    assert thought is not None
    assert thought.seconds > 0
    planned: list[int] = []
    drafter: Any = thought.drafter
    drafter._planned = lambda: planned.append(1)
    guesses = LexicalGuesses.of(CATALOG, CONVERSATION)
    afresh = Drafter(replace(opened.spec, guesses=guesses), CharacterCodec(), Stores(), stop_ids=STOPS)
    assert drafted(drafter, CALL[0]) == drafted(afresh, CALL[0])
    assert planned == []


def test_further_guesses_are_taken_in_without_another_thought(office: Office) -> None:
    opened = office.announce("r")
    office.settle()
    made: Any = office.foresight._thoughts["r"].drafter
    made.think = lambda: pytest.fail("thought again")
    office.inbox.post(GuessesMessage("r", LexicalGuesses((), {("other", "slot"): ()})))
    office.settle()
    thought = office.foresight.take(opened, "", STOPS)
    assert thought is not None
    guesses = thought.opened.spec.guesses
    assert guesses is not None
    assert guesses.names == LexicalGuesses.of(CATALOG, CONVERSATION).names
    assert ("other", "slot") in guesses.values
    assert thought.drafter is made
    assert office.faults == []


def test_a_target_that_begins_otherwise_is_thought_about_again(office: Office) -> None:
    opened = office.announce("r")
    office.settle()
    thought = office.foresight.take(opened, "", STOPS)
    assert thought is not None
    drafter: Any = thought.drafter
    drafter.commit([ord("{")])
    assert "".join(map(chr, drafter.draft(6).tokens)) == '"name"'


def test_a_hint_that_came_meanwhile_is_in_the_first_draft(office: Office) -> None:
    hint = Hint.of_call("weather", {"city": "Addis Ababa"})
    opened = office.announce("r")
    office.inbox.post(HintMessage("r", hint))
    office.settle()
    thought = office.foresight.take(opened, "", STOPS)
    assert thought is not None
    drafter: Any = thought.drafter
    drafter.commit([ord(CALL[0])])
    ahead = drafter._ahead
    drafter.offer(hint, time.monotonic())  # as the row does, which cannot know
    assert drafter._ahead is ahead is not None
    assert '"Addis Ababa"' in "".join(map(chr, drafter.draft(200).tokens))
    assert drafter.report()["hint"] == {"arrived": True, "at_token": 0, "used": True, "after_ms": 0.0}


@pytest.mark.parametrize(("lora", "stops"), [("other", STOPS), ("", (7,))])
def test_a_request_of_another_kind_is_thought_about_anew_and_the_next_one_is_expected_like_it(
    office: Office, lora: str, stops: tuple[int, ...]
) -> None:
    for request_id, expected in (("first", False), ("second", True)):
        opened = office.announce(request_id)
        office.settle()
        assert (office.foresight.take(opened, lora, stops) is not None) == expected


def test_what_was_learned_in_between_counts(office: Office) -> None:
    for request_id in ("late", "early"):
        opened = office.announce(request_id)
        office.settle()
        if request_id == "late":
            other = Drafter(opened.spec, CharacterCodec(), office.stores, stop_ids=STOPS)
            other.commit([*map(ord, CALL), 0])
            other.finish()
        assert (office.foresight.take(opened, "", STOPS) is None) == (request_id == "late")


def test_requests_that_never_begin_leave_nothing_in_the_stores(office: Office) -> None:
    opened = office.announce("begins", scope="one")
    office.announce("never begins", scope="two")
    office.settle()
    assert len(office.stores) == 0
    assert office.foresight.take(opened, "", STOPS) is not None
    assert len(office.stores) == 1


def test_a_request_is_not_taken_for_an_earlier_one_of_its_name(office: Office) -> None:
    first = office.announce("r")
    office.settle()
    assert office.foresight.take(Open(replace(first.spec, named="weather")), "", STOPS) is None
    assert office.foresight.take(first, "", STOPS) is not None


def test_a_request_that_has_begun_is_not_thought_about(office: Office) -> None:
    begun = Open(RequestSpec(id="r", method="toolspec", catalog=CATALOG))
    office.foresight.take(begun, "", STOPS)
    office.inbox.post(begun)
    office.settle()
    assert len(office.foresight) == 0
    office.inbox.post(Open(begun.spec))  # the same id again
    office.settle()
    assert len(office.foresight) == 1


def test_requests_that_are_not_drafted_are_not_thought_about(office: Office) -> None:
    off, on = office.announce("off", method="off"), office.announce("on", method="lexical")
    office.settle()
    assert office.foresight.take(off, "", STOPS) is None
    assert office.foresight.take(on, "", STOPS) is not None


def test_a_request_is_taken_once(office: Office) -> None:
    opened = office.announce("r")
    office.settle()
    assert office.foresight.take(opened, "", STOPS) is not None
    assert office.foresight.take(opened, "", STOPS) is None


def test_a_row_waits_a_moment_for_a_thought_and_no_longer(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    thinking, go_on = threading.Event(), threading.Event()
    make = office.make

    def slow(*asked: Any) -> Drafter:
        thinking.set()
        assert go_on.wait(PATIENCE_S)
        return make(*asked)

    office.foresight._make = slow
    opened = office.announce("slow")
    assert thinking.wait(PATIENCE_S)
    assert office.foresight.take(opened, "", STOPS) is None
    go_on.set()
    thinking.clear()
    go_on.clear()
    monkeypatch.setattr(module, "PATIENCE_S", PATIENCE_S)
    opened = office.announce("slow again")
    assert thinking.wait(PATIENCE_S)
    threading.Timer(0.05, go_on.set).start()
    assert office.foresight.take(opened, "", STOPS) is not None


def test_all_mail_comes_once_and_in_order_whoever_reads_it(office: Office) -> None:
    sent = [HintMessage(str(number), Hint()) for number in range(400)]
    sender = threading.Thread(target=lambda: [office.inbox.post(message) for message in sent])
    sender.start()
    read: list[Mail] = []
    wait_for(lambda: bool(read.extend(office.foresight.mail())) or len(read) >= len(sent))
    sender.join()
    assert read == sent


def test_what_does_not_fit_stays_where_it_is_until_the_engine_takes_mail(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_MAIL", 3)
    sent = [HintMessage(str(number), Hint()) for number in range(9)]
    office.inbox.post(*sent)
    wait_for(lambda: len(office.foresight._mail) == 3)
    assert len(office.inbox._letters) == 6
    assert office.foresight.mail() == sent
    office.inbox.post(*sent)
    wait_for(lambda: len(office.foresight._mail) == 3)  # it reads again


def test_mail_that_has_lain_too_long_is_not_read(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.inbox.post(HintMessage("old", Hint()))
    office.settle()
    monkeypatch.setattr(module, "MAX_AGE_S", -1.0)
    assert office.foresight.mail() == []
    assert office.inbox.dropped == 1


def test_no_request_takes_the_place_of_an_older_one(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_AHEAD", 4)
    opened = [office.announce(str(number)) for number in range(9)]
    office.settle()
    assert len(office.foresight) == 4
    taken = [office.foresight.take(each, "", STOPS) is not None for each in opened]
    assert taken == [True] * 4 + [False] * 5


def test_a_request_that_was_given_up_makes_place(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_AHEAD", 1)
    office.announce("given up")
    office.settle()
    monkeypatch.setattr(module, "MAX_AHEAD_S", -1.0)
    opened = office.announce("newer")
    office.settle()
    assert office.foresight.take(opened, "", STOPS) is not None


def test_a_fault_costs_a_thought_and_no_mail(office: Office) -> None:
    office.breaks = True
    broken = office.announce("broken")
    office.settle()
    assert office.foresight.take(broken, "", STOPS) is None
    office.breaks = False
    whole = office.announce("whole")
    office.settle()
    assert office.foresight.take(whole, "", STOPS) is not None
    assert len(office.foresight.mail()) == 4
    assert set(office.faults) == {"foresight: broken"}


def test_the_thread_outlives_a_fault_in_reading_but_not_many(office: Office) -> None:
    read = office.inbox.mail
    fails = [True]

    def failing(most: int = 256) -> list[Mail]:
        if fails[0]:
            fails[0] = False
            msg = "no mail today"
            raise OSError(msg)
        return read(most)

    office.inbox.mail = failing  # type: ignore[method-assign]
    opened = office.announce("r")
    office.settle()
    assert office.foresight.take(opened, "", STOPS) is not None
    assert office.faults == ["foresight: no mail today"]

    def always(most: int = 256) -> list[Mail]:
        raise OSError

    office.inbox.mail = always  # type: ignore[method-assign]
    office.inbox.post(opened)
    wait_for(lambda: not office.foresight._thread.is_alive())
    assert len(office.faults) == module.MAX_FAULTS
