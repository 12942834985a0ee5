import pytest

from ooospec_agents.bench import rest as module
from ooospec_agents.bench.rest import Rest

WATCH_S = 1.5


@pytest.fixture(autouse=True)
def watching(restless: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WATCH_S", WATCH_S)


class Time:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


def test_the_first_request_need_not_wait() -> None:
    time = Time()
    Rest(time.clock, time.sleep).before()
    assert time.slept == []


def test_a_request_waits_until_the_last_server_asked_sleeps() -> None:
    time = Time()
    rest = Rest(time.clock, time.sleep)
    rest.after()
    time.now += 0.5
    rest.after()
    time.now += 0.25
    rest.before()
    rest.before()
    assert time.slept == [WATCH_S - 0.25]
