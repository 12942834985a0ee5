"""Faults, one after the other, against the real plugin over a scripted engine: `docs/faults.md` with the figures got.

`python -m ooospec_agents.bench.faults` runs all and writes `docs/faults.json` and the page; `--render` only the page.
"""

from __future__ import annotations

import asyncio
import json
import math
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ooospec_agents.bench.fault_bench import ANSWERS, STEP_S, Bench, Outcome, hang_up, request, under, usual
from ooospec_agents.bench.summary import save
from ooospec_agents.hint import Hint
from ooospec_agents.testing.engine import PREFILL_S
from ooospec_agents.testing.sidecar import ScriptedSidecar

COOLDOWN_S = 0.3
"""The breaker's rest in these runs; 15 s in production."""
HANGING_S = 0.05
"""Silence that counts as a failure in these runs; 2 s in production. A request takes about twice as long."""


async def sidecar_fault(
    name: str, requests: int, ill: dict[str, Any], *, model: str = "", stop: bool = False
) -> Outcome:
    """A sidecar that misbehaves for a while and then is well again."""
    outcome = Outcome(name)
    base = await usual(requests)
    sidecar = ScriptedSidecar(ANSWERS, models=("m",) if model else None)
    with sidecar:
        sidecar.port = int(sidecar.url.rpartition(":")[2])
        async with under(outcome, sidecar.url) as bench:
            bench.sidecar._breaker._cooldown_s = COOLDOWN_S
            bench.sidecar._patience_s = math.inf  # `hanging` looks at silence
            if model:
                bench.sidecar._backend._model = model  # type: ignore[attr-defined]
            sidecar.misbehave(**ill)
            if stop:
                sidecar.__exit__(None, None, None)
            await bench.ask()
            took = [await bench.ask() for _ in range(requests)]
            outcome.added_ms = round((statistics.median(took) - base) * 1e3, 1)
            opened = bench.sidecar._breaker._failed >= bench.sidecar._breaker._limit
            if stop:
                sidecar.__enter__()
            if model:
                bench.sidecar._backend._model = "m"  # type: ignore[attr-defined]
            sidecar.misbehave()
            outcome.breaker = f"{'opened' if opened else 'not needed'}, {await _mended(bench)}"
    return outcome


async def hanging(requests: int) -> Outcome:
    """A sidecar that never answers while requests end, which is how it is noticed; then it is well again."""
    outcome = Outcome("sidecar hangs")
    base = await usual(requests)
    with ScriptedSidecar(ANSWERS, delay_s=30.0) as sidecar:
        async with under(outcome, sidecar.url) as bench:
            worker, breaker = bench.sidecar, bench.sidecar._breaker
            worker._patience_s, breaker._cooldown_s = HANGING_S, COOLDOWN_S
            took = [await bench.ask() for _ in range(max(requests, 6))]
            outcome.added_ms = round((statistics.median(took) - base) * 1e3, 1)
            opened = breaker._failed >= breaker._limit
            outcome.counters["waves running at the end"] = worker._running
            sidecar.misbehave()
            outcome.breaker = f"{'opened' if opened else 'not needed'}, {await _mended(bench)}"
    return outcome


async def _mended(bench: Bench) -> str:
    """Ask until the sidecar, which is well again, is heard."""
    await asyncio.sleep(COOLDOWN_S)
    for _ in range(20):
        await bench.ask()
        if bench.sidecar.counts["hint"]:
            break
    well = bench.sidecar.counts["hint"] > 0 and not bench.sidecar.resting
    return "closed again" if well else "still open"


async def hint_fault(name: str, requests: int, act: Callable[[Bench, int], Awaitable[None]]) -> Outcome:
    """Hints that come as they should not."""
    outcome = Outcome(name)
    base = await usual(requests)
    async with under(outcome) as bench:
        await bench.ask()
        took = []
        for number in range(requests):
            await act(bench, number)
            took.append(await bench.ask(ooospec_id=f"r{number}"))
        outcome.added_ms = round((statistics.median(took) - base) * 1e3, 1)
    return outcome


async def _flood(bench: Bench, number: int) -> None:
    for index in range(100):
        await bench.hint(f"nobody {number} {index}")


async def _late(bench: Bench, number: int) -> None:
    if number:
        await bench.hint(f"r{number - 1}")


async def _twice(bench: Bench, number: int) -> None:
    for _ in range(3):
        await bench.hint(f"r{number}")


async def _out_of_order(bench: Bench, number: int) -> None:
    await bench.hint(f"r{number}", "another town")
    await bench.hint(f"r{number + 1}")
    await bench.hint(f"r{number}")


async def _foreign(bench: Bench, number: int) -> None:
    text = Hint.of_call("get_weather", {"city": "elsewhere"}).to_json()
    await bench.client.put(f"/v1/ooospec/hints/r{number}", content=text, headers={"authorization": "Bearer other"})


async def _wrong(bench: Bench, number: int) -> None:
    await bench.hint(f"r{number}", "a wrong town " * 20)


async def clients_gone(requests: int) -> Outcome:
    """Clients that hang up in mid-stream; the next request is served as ever."""
    outcome = Outcome("client gone in mid-stream")
    base = await usual(requests)
    with ScriptedSidecar(ANSWERS, delay_s=0.05) as sidecar:
        async with under(outcome, sidecar.url) as bench:
            for _ in range(requests):
                await hang_up(bench.target, request("Ulm", ooospec="off"))
                await hang_up(bench.target, request("Ulm"))
            await served_as_ever(bench, outcome, requests, base)
    return outcome


async def served_as_ever(bench: Bench, outcome: Outcome, requests: int, base: float) -> None:
    """Ask again after a fault: what a request takes now over `base` seconds, and what of the broken ones is left."""
    took = [await bench.ask() for _ in range(requests)]
    outcome.added_ms = round((statistics.median(took) - base) * 1e3, 1)
    outcome.counters["rows left"] = len(bench.target.engine.requests)


async def aborted(requests: int) -> Outcome:
    """Requests that the engine ends in the middle; the next one is served as ever."""
    outcome = Outcome("requests aborted")
    base = await usual(requests)
    async with under(outcome) as bench:
        engine = bench.target.engine
        for _ in range(requests):
            body = request("a town with a long name " * 20)
            answer = asyncio.create_task(bench.client.post("/v1/chat/completions", json=body))
            while not engine.requests:
                await asyncio.sleep(0.001)
            for req_id in list(engine.requests):
                engine.abort(req_id)
            await answer
        await served_as_ever(bench, outcome, requests, base)
    return outcome


async def cancelled(requests: int) -> Outcome:
    """Requests that are cancelled once they were announced and before they begin."""
    outcome = Outcome("requests cancelled before they begin")
    base = await usual(requests)
    async with under(outcome) as bench:
        for _ in range(requests):
            answer = asyncio.create_task(bench.client.post("/v1/chat/completions", json=request("Ulm")))
            await asyncio.sleep(PREFILL_S / 3)
            answer.cancel()
            await asyncio.wait([answer])
        await served_as_ever(bench, outcome, requests, base)
    return outcome


async def preempted(requests: int) -> Outcome:
    """Requests that lose their place, and their draft, every few steps."""
    outcome = Outcome("requests preempted")
    async with under(outcome) as bench:
        bench.target.engine.preempt_every = 3
        for number in range(requests):
            await bench.ask(f"town {number}")
    return outcome


async def restarted(requests: int) -> Outcome:
    """A target that is started anew between requests of a client that goes on as before."""
    outcome = Outcome("target restarted")
    for _ in range(2):
        async with under(outcome) as bench:
            for number in range(requests):
                await bench.hint(f"r{number}")
                await bench.ask(ooospec_id=f"r{number}")
    return outcome


async def clock_jumps(requests: int) -> Outcome:
    """The wall clock jumps by a day, there and back."""
    outcome = Outcome("clock jumps by a day")
    real, offset = time.time, 0.0

    def jumping() -> float:
        return real() + offset

    time.time = jumping
    try:
        async with under(outcome) as bench:
            for number in range(requests):
                offset = (-86_400.0, 0.0, 86_400.0)[number % 3]
                await bench.hint(f"r{number}")
                await bench.ask(ooospec_id=f"r{number}")
    finally:
        time.time = real
    return outcome


CASES: dict[str, Callable[[int], Coroutine[Any, Any, Outcome]]] = {
    "refused": lambda n: sidecar_fault("sidecar refuses connections, restarted", n, {}, stop=True),
    "slow": lambda n: sidecar_fault("sidecar slow (1 s)", n, {"delay_s": 1.0}),
    "hanging": hanging,
    "half_closed": lambda n: sidecar_fault("sidecar closes connections", n, {"break_connection": True}),
    "429": lambda n: sidecar_fault("sidecar answers 429", n, {"status": 429}),
    "500": lambda n: sidecar_fault("sidecar answers 500", n, {"status": 500}),
    "wrong_model": lambda n: sidecar_fault("sidecar has another model", n, {}, model="other"),
    "wrong_json": lambda n: sidecar_fault("sidecar answers no JSON", n, {"garbage": "<html>"}),
    "wrong_shape": lambda n: sidecar_fault("sidecar answers other JSON", n, {"garbage": '{"choices": [{"text": 5}]}'}),
    "flood": lambda n: hint_fault("100 hints for nobody before each request", n, _flood),
    "late": lambda n: hint_fault("hints late", n, _late),
    "duplicated": lambda n: hint_fault("hints duplicated", n, _twice),
    "out_of_order": lambda n: hint_fault("hints out of order", n, _out_of_order),
    "foreign": lambda n: hint_fault("hints for others' ids", n, _foreign),
    "wrong": lambda n: hint_fault("hints wrong", n, _wrong),
    "client_gone": clients_gone,
    "aborted": aborted,
    "cancelled": cancelled,
    "preempted": preempted,
    "restarted": restarted,
    "clock": clock_jumps,
}

HEAD = """# Faults

Written by `python -m ooospec_agents.bench.faults`, which runs each fault against the real plugin (middleware, sockets,
proposer, drafter) over a scripted engine and a scripted sidecar on loopback; a test checks that page and figures match,
others run the faults. "identical" counts outputs equal to those of a server without us. "added" is the median time that
the fault adds to a request, beside one without a fault and without a sidecar on the same machine; a step of the
scripted engine takes {step_ms:g} ms. Every kind of fault is logged once, until it is mended.

A full disk is no fault of a request: the servers keep nothing on one. Weights, training states and results are written
whole or not at all, and what is said names the folder (`tests/unit/test_full_disk.py`).
"""


def render(result: dict[str, Any]) -> str:
    """The page."""
    lines = ["| fault | identical | added | circuit breaker | log lines | counted |", "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        added = "" if row["added_ms"] is None else f"{row['added_ms']:.1f} ms"
        counted = ", ".join(f"{name} {count}" for name, count in row["counters"].items())
        same = f"{row['identical']} of {row['requests']}"
        lines.append(f"| {row['fault']} | {same} | {added} | {row['breaker']} | {row['log_lines']} | {counted} |")
    made = f"`{result['command']}`, {result['machine']['cpu']}, {result['machine']['cores']} cores"
    return f"{HEAD.format(step_ms=result['step_ms'])}\n" + "\n".join(lines) + f"\n\nMade by {made}.\n"


def main(
    figures: Annotated[Path, typer.Option(help="File of the figures.")] = Path("docs/faults.json"),
    page: Annotated[Path, typer.Option(help="Page to write.")] = Path("docs/faults.md"),
    requests: Annotated[int, typer.Option(help="Requests under each fault.")] = 30,
    only_render: Annotated[
        bool, typer.Option("--render", help="Write the page from the figures, run nothing.")
    ] = False,
) -> None:
    """Run the faults and write the page."""
    if not only_render:
        rows = []
        for case in CASES.values():
            rows.append(asdict(asyncio.run(case(requests))))
            typer.echo(f"{rows[-1]}")
        save(figures, "faults", {"step_ms": STEP_S * 1e3, "rows": rows})
    page.write_text(render(json.loads(figures.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
