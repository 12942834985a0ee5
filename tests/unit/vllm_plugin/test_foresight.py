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

from ooospec_agents.vllm_plugin import foresight as module
from ooospec_agents.vllm_plugin.foresight import Foresight

STOPS = (0,)
PATIENCE_S = 20.0
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}}}
CATALOG = Catalog.from_tools([TOOL])
CONVERSATION = "user: What is the weather in Bonn?"
CALL = "".join(segment.text for segment in FORMATS["hermes"].write([("weather", {"city": "Bonn"})]))


class Letters:
    """A tokenizer of single characters; id 0 is the end."""

    vocab_size = 0x110000

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


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

    def mail(self) -> list[Mail]:
        with self._lock:
            letters, self._letters = self._letters, []
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
        self.foresight = Foresight(self.inbox, self.make, self.fault)  # type: ignore[arg-type]

    def make(self, spec: RequestSpec, lora: str, stops: Sequence[int]) -> Drafter:
        if self.breaks:
            msg = "broken"
            raise RuntimeError(msg)
        return Drafter(spec, Letters(), self.stores, lora=lora, stop_ids=stops)

    def fault(self, where: str, error: Exception) -> None:
        self.faults.append(f"{where}: {error}")

    def announce(self, request_id: str, **fields: Any) -> RequestSpec:
        given = {"method": "ooospec", "wire_format": "hermes", "catalog": CATALOG, "required": True}
        spec = RequestSpec(id=request_id, conversation=CONVERSATION, **{**given, **fields})
        self.inbox.post(Open(spec))
        if spec.method in ("lexical", "ooospec"):
            self.inbox.post(GuessesMessage(request_id, LexicalGuesses.of(CATALOG, CONVERSATION)))
        return spec

    def settle(self) -> None:
        """Wait until the thread has done all that was posted."""
        marker = f"marker-{time.monotonic()}"
        self.inbox.post(Open(RequestSpec(id=marker, method="toolspec", catalog=CATALOG)))
        wait_for(lambda: (found := self.foresight._thoughts.get(marker)) is not None and found.seconds > 0)


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
        made.foresight.take("the one before", "", STOPS)
        yield made


def drafted(drafter: Any, written: str) -> str:
    drafter.commit([ord(letter) for letter in written])
    return "".join(map(chr, drafter.draft(200).tokens)).rstrip("\0")


def test_the_first_draft_is_there_before_the_first_token_and_is_the_one_that_would_be_made_then(office: Office) -> None:
    spec = office.announce("r")
    office.settle()
    thought = office.foresight.take("r", "", STOPS)
    assert thought is not None
    assert thought.seconds > 0
    planned: list[int] = []
    drafter: Any = thought.drafter
    drafter._planned = lambda: planned.append(1)
    afresh = Drafter(
        replace(spec, guesses=LexicalGuesses.of(CATALOG, CONVERSATION)), Letters(), Stores(), stop_ids=STOPS
    )
    assert drafted(drafter, CALL[0]) == drafted(afresh, CALL[0])
    assert planned == []


def test_a_target_that_begins_otherwise_is_thought_about_again(office: Office) -> None:
    office.announce("r")
    office.settle()
    thought = office.foresight.take("r", "", STOPS)
    assert thought is not None
    drafter: Any = thought.drafter
    drafter.commit([ord("{")])
    assert "".join(map(chr, drafter.draft(6).tokens)) == '"name"'


def test_a_hint_that_came_meanwhile_is_in_the_first_draft(office: Office) -> None:
    hint = Hint.of_call("weather", {"city": "Addis Ababa"})
    office.announce("r")
    office.inbox.post(HintMessage("r", hint))
    office.settle()
    thought = office.foresight.take("r", "", STOPS)
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
    office.announce("first")
    office.settle()
    assert office.foresight.take("first", lora, stops) is None
    office.announce("second")
    office.settle()
    assert office.foresight.take("second", lora, stops) is not None


def test_what_was_learned_in_between_counts(office: Office) -> None:
    for request_id in ("stale", "fresh"):
        office.announce(request_id)
        office.settle()
        if request_id == "stale":
            other = office.make(office.announce("other"), "", STOPS)
            other.commit([*map(ord, CALL), 0])
            other.finish()
        assert (office.foresight.take(request_id, "", STOPS) is None) == (request_id == "stale")


def test_requests_that_are_not_drafted_are_not_thought_about(office: Office) -> None:
    office.announce("off", method="off")
    office.announce("on", method="lexical")
    office.settle()
    assert office.foresight.take("off", "", STOPS) is None
    assert office.foresight.take("on", "", STOPS) is not None


def test_a_request_is_taken_once(office: Office) -> None:
    office.announce("r")
    office.settle()
    assert office.foresight.take("r", "", STOPS) is not None
    assert office.foresight.take("r", "", STOPS) is None


def test_all_mail_comes_once_and_in_order_whoever_reads_it(office: Office) -> None:
    sent = [HintMessage(str(number), Hint()) for number in range(400)]
    sender = threading.Thread(target=lambda: [office.inbox.post(message) for message in sent])
    sender.start()
    read: list[Mail] = []
    wait_for(lambda: bool(read.extend(office.foresight.mail())) or len(read) >= len(sent))
    sender.join()
    assert read == sent


def test_an_engine_that_never_looks_costs_no_memory(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED", 3)
    sent = [HintMessage(str(number), Hint()) for number in range(9)]
    for message in sent:
        office.inbox.post(message)
    office.settle()
    mail = office.foresight.mail()
    assert len(mail) == 3
    assert mail[:-1] == sent[-2:]
    assert office.inbox.dropped == 7


def test_thoughts_are_bounded_in_number(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_AHEAD", 4)
    for number in range(9):
        office.announce(str(number))
    office.settle()
    assert len(office.foresight) == 4
    assert office.foresight.take("4", "", STOPS) is None
    assert office.foresight.take("8", "", STOPS) is not None


def test_thoughts_are_bounded_in_age(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.announce("old")
    office.settle()
    monkeypatch.setattr(module, "MAX_AHEAD_S", -1.0)
    office.announce("newer")
    wait_for(lambda: len(office.foresight) == 0)


def test_a_fault_of_the_thread_costs_a_thought_and_no_mail(office: Office) -> None:
    office.breaks = True
    office.announce("broken")
    wait_for(lambda: bool(office.faults))
    assert office.foresight.take("broken", "", STOPS) is None
    office.breaks = False
    office.announce("whole")
    office.settle()
    assert office.foresight.take("whole", "", STOPS) is not None
    assert len(office.foresight.mail()) == 5
    assert office.faults == ["foresight: broken"]
