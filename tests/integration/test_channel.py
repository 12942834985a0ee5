import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ooospec_agents.catalog import Catalog, Function
from ooospec_agents.drafting.guesses import LexicalGuesses
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin.messages import MAX_MESSAGE_BYTES, GuessesMessage, HintMessage, Open

zmq = pytest.importorskip("zmq")

from ooospec_agents.vllm_plugin import channel as channel_module  # noqa: E402
from ooospec_agents.vllm_plugin import sockets as sockets_module  # noqa: E402
from ooospec_agents.vllm_plugin.channel import (  # noqa: E402
    ApiChannel,
    ChannelError,
    WorkerInbox,
    WorkerOutbox,
    worker_address,
)

CATALOG = Catalog(functions=(Function("weather", "Look outside"),), id="w1")
SPEC = RequestSpec(id="r1", catalog=CATALOG)
HINT = Hint.of_call("weather", {"city": "Bonn"})


@pytest.fixture(autouse=True)
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ooo") as name:  # 0700, and short enough for a socket
        monkeypatch.setenv("OOOSPEC_SOCKET_DIR", name)
        yield Path(name)


@pytest.fixture
def inbox() -> Iterator[WorkerInbox]:
    box = WorkerInbox(worker_address(0))
    yield box
    box.close()


@pytest.fixture
def api(inbox: WorkerInbox) -> Iterator[ApiChannel]:
    end = ApiChannel()
    yield end
    end.close()


@pytest.fixture
def outbox() -> Iterator[WorkerOutbox]:
    box = WorkerOutbox()
    yield box
    box.close()


def read(inbox: WorkerInbox, count: int, seconds: float = 5.0) -> list[Open | HintMessage | GuessesMessage]:
    messages: list[Open | HintMessage | GuessesMessage] = []
    deadline = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < deadline:
        messages += inbox.mail()
        time.sleep(0.001)
    return messages


def test_request_and_hint_arrive_in_order(api: ApiChannel, inbox: WorkerInbox) -> None:
    assert api.open(SPEC)
    assert api.hint("r1", HINT)
    opened, hinted = read(inbox, 2)
    assert isinstance(opened, Open)
    assert opened.spec == replace(SPEC, reply_to=api.reply_address)
    assert isinstance(hinted, HintMessage)
    assert (hinted.id, hinted.hint) == ("r1", HINT)


def test_guesses_arrive_as_they_were_made(api: ApiChannel, inbox: WorkerInbox) -> None:
    guesses = LexicalGuesses(
        (Guess("weather", 0.9, "lexical"),),
        {("weather", "days"): (Guess([1, "x"], 0.5, "lexical"), Guess(True, 0.1, "lexical"))},
    )
    assert api.guesses("r1", guesses)
    [message] = read(inbox, 1)
    assert isinstance(message, GuessesMessage)
    assert (message.id, message.guesses) == ("r1", guesses)


def test_catalog_is_sent_once(api: ApiChannel, inbox: WorkerInbox, monkeypatch: pytest.MonkeyPatch) -> None:
    with_catalog: list[bool] = []
    encode = channel_module.encode_open

    def spy(message: Open, *, with_catalog: bool) -> bytes:
        seen.append(with_catalog)
        return encode(message, with_catalog=with_catalog)

    seen = with_catalog
    monkeypatch.setattr(channel_module, "encode_open", spy)
    api.open(SPEC)
    api.open(replace(SPEC, id="r2"))
    first, second = read(inbox, 2)
    assert with_catalog == [True, False]
    assert isinstance(first, Open)
    assert isinstance(second, Open)
    assert second.spec.catalog == CATALOG


def test_catalog_forgotten_by_the_sender_is_sent_again(
    api: ApiChannel, inbox: WorkerInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "SENDER_CATALOGS", 1)
    other = Catalog(functions=(Function("other"),), id="o1")
    api.open(SPEC)
    api.open(replace(SPEC, id="r2", catalog=other))
    inbox._catalogs._catalogs.clear()  # as if the worker had dropped both
    read(inbox, 2)
    inbox._catalogs._catalogs.clear()
    api.open(replace(SPEC, id="r3"))
    (message,) = read(inbox, 1)
    assert isinstance(message, Open)
    assert message.spec.catalog == CATALOG


async def test_report_comes_back(api: ApiChannel, outbox: WorkerOutbox) -> None:
    assert outbox.send(api.reply_address, {"id": "r1", "steps": 3})
    assert await api.report("r1", timeout=5.0) == {"id": "r1", "steps": 3}


async def test_newest_report_wins_and_is_taken_once(api: ApiChannel, outbox: WorkerOutbox) -> None:
    outbox.send(api.reply_address, {"id": "r1", "steps": 1})
    outbox.send(api.reply_address, {"id": "r1", "steps": 2})
    outbox.send(api.reply_address, {"id": "last"})
    assert await api.report("last", timeout=5.0) is not None  # sent last: the others are there too
    assert api.take_report("r1") == {"id": "r1", "steps": 2}
    assert api.take_report("r1") is None


async def test_report_that_never_comes_is_none(api: ApiChannel) -> None:
    assert await api.report("nobody", timeout=0.01) is None


async def test_reports_nobody_asks_for_are_bounded(
    api: ApiChannel, outbox: WorkerOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "MAX_REPORTS", 2)
    for name in "abc":
        outbox.send(api.reply_address, {"id": name})
    assert await api.report("c", timeout=5.0) == {"id": "c"}
    assert api.take_report("a") is None
    assert api.take_report("b") == {"id": "b"}


def test_garbage_costs_one_message_only(api: ApiChannel, inbox: WorkerInbox) -> None:
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    socket.connect(worker_address(0))
    socket.send(b"\xff not ours")
    socket.send(b"[" * 10_000)
    deadline = time.monotonic() + 5.0
    while inbox.dropped < 2 and time.monotonic() < deadline:
        assert inbox.mail() == []
    api.hint("r1", HINT)
    messages = read(inbox, 1)
    socket.close(linger=0)
    context.term()
    assert inbox.dropped == 2
    assert [message.id for message in messages if isinstance(message, HintMessage)] == ["r1"]


def test_old_messages_are_dropped(api: ApiChannel, inbox: WorkerInbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "MAX_AGE_S", -1.0)
    api.hint("r1", HINT)
    deadline = time.monotonic() + 5.0
    while not inbox.dropped and time.monotonic() < deadline:
        assert inbox.mail() == []
    assert inbox.dropped == 1


def test_too_large_a_request_is_not_sent(api: ApiChannel, inbox: WorkerInbox) -> None:
    assert not api.open(replace(SPEC, conversation="x" * MAX_MESSAGE_BYTES))
    assert api.open(SPEC)
    (message,) = read(inbox, 1)
    assert isinstance(message, Open)
    assert message.spec.catalog == CATALOG  # the failed message did not count as having carried it


def test_full_queue_drops_and_does_not_block(sockets: Path) -> None:
    api = ApiChannel()  # no worker listens
    try:
        results = [api.hint("r", HINT) for _ in range(sockets_module.MAX_QUEUED + 1)]
    finally:
        api.close()
    assert results[0] is True
    assert results[-1] is False


def test_rank_that_reads_nothing_does_not_stop_the_others(sockets: Path) -> None:
    box = WorkerInbox(worker_address(0))
    api = ApiChannel(range(2))  # nothing listens for rank 1
    try:
        for _ in range(sockets_module.MAX_QUEUED + 1):
            assert api.hint("r", HINT)
            read(box, 1)
        assert api.open(SPEC)
    finally:
        api.close()
        box.close()


def test_every_rank_is_told(sockets: Path) -> None:
    boxes = [WorkerInbox(worker_address(rank)) for rank in range(2)]
    api = ApiChannel(range(2))
    try:
        assert api.open(SPEC)
        told = [read(box, 1) for box in boxes]
    finally:
        api.close()
        for box in boxes:
            box.close()
    assert [len(messages) for messages in told] == [1, 1]


def test_report_goes_to_no_foreign_address(outbox: WorkerOutbox) -> None:
    assert not outbox.send("ipc:///tmp/elsewhere", {"id": "r1"})
    assert not outbox.send("tcp://127.0.0.1:9", {"id": "r1"})
    assert outbox.dropped == 2


def test_without_its_check_a_report_would_go_anywhere(
    outbox: WorkerOutbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(channel_module, "socket_dir", lambda: tmp_path)
    assert outbox.send(f"ipc://{tmp_path}/elsewhere", {"id": "r1"})


def test_inbox_that_cannot_listen_is_empty() -> None:
    box = WorkerInbox("ipc:///nowhere/at/all")
    assert "cannot listen" in box.fault
    assert box.mail() == []


def test_folder_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OOOSPEC_SOCKET_DIR")
    with pytest.raises(ChannelError, match="ooospec serve target"):
        worker_address(0)


def test_folder_open_to_others_is_refused(sockets: Path) -> None:
    os.chmod(sockets, 0o755)
    with pytest.raises(ChannelError, match="mode 0700"):
        worker_address(0)


def test_without_its_check_a_folder_open_to_others_would_do(sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chmod(sockets, 0o755)
    monkeypatch.setattr(sockets_module.stat, "S_IMODE", lambda mode: 0o700)
    assert worker_address(0).startswith("ipc://")


def test_missing_folder_is_refused(monkeypatch: pytest.MonkeyPatch, sockets: Path) -> None:
    monkeypatch.setenv("OOOSPEC_SOCKET_DIR", str(sockets / "absent"))
    with pytest.raises(ChannelError, match="cannot be used"):
        ApiChannel()


def test_too_long_a_path_is_refused(monkeypatch: pytest.MonkeyPatch, sockets: Path) -> None:
    deep = sockets / ("d" * 100)
    deep.mkdir(mode=0o700)
    monkeypatch.setenv("OOOSPEC_SOCKET_DIR", str(deep))
    with pytest.raises(ChannelError, match="the 107 bytes"):
        worker_address(0)
