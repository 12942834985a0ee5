"""Each fault in turn: the output stays, one log line at most, a counter; and the breaker is what holds waves back."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("prometheus_client")
pytest.importorskip("zmq")

from ooospec_agents.bench import faults
from ooospec_agents.bench.fault_bench import ANSWERS, Bench, Outcome, request, under
from ooospec_agents.bench.faults import CASES, render
from ooospec_agents.testing.sidecar import ScriptedSidecar
from ooospec_agents.vllm_plugin import channel

DOCS = Path(__file__).parents[2] / "docs"
REQUESTS = 6
BREAKING = {"refused", "half_closed", "429", "500", "wrong_model", "wrong_json", "wrong_shape", "hanging"}
COUNTED = {
    **dict.fromkeys(("refused", "half_closed"), "waves: down"),
    **dict.fromkeys(("429", "500"), "waves: server"),
    **dict.fromkeys(("wrong_json", "wrong_shape"), "waves: garbage"),
    "wrong_model": "waves: model",
    "hanging": "waves: silent",
    "late": "hints late",
}


@pytest.mark.parametrize("name", CASES)
async def test_the_output_is_that_of_a_server_without_us(name: str) -> None:
    outcome = await CASES[name](REQUESTS)
    assert outcome.identical == outcome.requests > 0
    assert outcome.log_lines == (name in BREAKING)
    assert "invalid drafts" not in outcome.counters
    assert "faults" not in outcome.counters
    assert outcome.counters.get("rows left", 0) == 0
    assert outcome.counters.get("waves running at the end", 0) <= 1
    assert ("opened, closed again" in outcome.breaker) is (name in BREAKING)
    if name in COUNTED:
        assert outcome.counters[COUNTED[name]] > 0


async def test_another_output_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome("")
    async with under(outcome) as bench:
        bench.target.script = lambda body: "something else"
        await bench.ask()
    assert (outcome.requests, outcome.identical) == (1, 0)


@pytest.mark.parametrize(("breaks", "waves"), [(True, 3), (False, REQUESTS)], ids=["breaker", "taken out"])
async def test_the_breaker_leaves_a_failing_sidecar_alone(breaks: bool, waves: int) -> None:
    with ScriptedSidecar(ANSWERS, status=500) as sidecar:
        async with under(Outcome(""), sidecar.url) as bench:
            if not breaks:
                bench.sidecar._breaker._limit = 10**9
            bench.sidecar._backend._model = "m"  # type: ignore[attr-defined]
            for _ in range(REQUESTS):
                failed = bench.sidecar.counts["server"] + bench.sidecar.counts["open"]
                await bench.ask()
                await settled(bench, failed)
            assert len(sidecar.waves) == waves


async def settled(bench: Bench, before: int) -> None:
    for _ in range(500):
        if bench.sidecar.counts["server"] + bench.sidecar.counts["open"] > before:
            return
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("duplicated", 6),
        ("out_of_order", 6),
        ("wrong", 6),
        ("restarted", 12),
        ("clock", 6),
        ("late", 0),
        ("foreign", 0),
    ],
)
async def test_hints_find_their_own_requests_and_no_others(name: str, used: int) -> None:
    outcome = await CASES[name](REQUESTS)
    assert outcome.counters.get("hints used", 0) == used


async def test_a_clock_that_jumps_for_messages_too_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 86_400)
    monkeypatch.setattr(channel, "time", later)  # as if their age were read from the wall clock
    outcome = await CASES["clock"](REQUESTS)
    assert outcome.identical == outcome.requests
    assert outcome.counters.get("hints used", 0) == 0


@pytest.mark.parametrize(("every", "lost"), [(3, True), (0, False)], ids=["preempted", "not"])
async def test_preempted_requests_lose_steps_and_nothing_else(every: int, lost: bool) -> None:
    outcome = Outcome("")
    async with under(outcome) as bench:
        await bench.ask()
        before = bench.target.engine.steps
        bench.target.engine.preempt_every = every
        await bench.ask("a town with a long name")
        steps = bench.target.engine.steps - before
        bench.target.engine.preempt_every = 0
        await bench.ask("b town with b long name")
        assert (steps > bench.target.engine.steps - before - steps) is lost
    assert outcome.identical == 3


async def test_a_flood_of_hints_is_bounded() -> None:
    outcome = await faults.hint_fault("flood", REQUESTS, faults._flood)
    assert outcome.counters["hints unclaimed"] == 100 * REQUESTS - 256


async def test_a_client_that_hangs_up_ends_its_request() -> None:
    outcome = Outcome("")
    async with under(outcome) as bench:
        body = request("a town with a long name " * 20, ooospec="off")
        await faults.hang_up(bench.target, body)
        assert bench.target.engine.requests == {}
        assert bench.target.engine.steps < 100  # and not all of its five hundred


def test_the_page_is_what_the_figures_say() -> None:
    figures = json.loads((DOCS / "faults.json").read_text(encoding="utf-8"))
    assert (DOCS / "faults.md").read_text(encoding="utf-8") == render(figures)
    assert {row["fault"] for row in figures["rows"]}
    assert all(row["identical"] == row["requests"] for row in figures["rows"])
