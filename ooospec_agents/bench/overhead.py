"""What it costs where it cannot help: plain chat against stock vLLM, time to first token beside a sidecar."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from ooospec_agents.bench.data import Item, load
from ooospec_agents.bench.rawlog import RawLog
from ooospec_agents.bench.requests import LIMITS, Answer, ask, chat_body, with_xargs
from ooospec_agents.bench.rest import WATCH_S, Rest
from ooospec_agents.bench.servers import Server, Setup, SidecarSetup, ours, sidecar, stock
from ooospec_agents.bench.stats import ratio_of_totals
from ooospec_agents.bench.summary import save
from ooospec_agents.sidecar.adapters import adapter_for

Way = Callable[[Item, int], Answer]
"""Answers one item in one way; the number tells repetitions of an item apart."""
BLOCK = 100
"""Pairs between two starts of the servers."""
Start = Callable[[Setup, Path], AbstractContextManager[Server]]
"""Starts a server."""


def alternate(items: Sequence[Item], pairs: Iterable[int], first: Way, second: Way, raw: RawLog) -> None:
    """Answer items both ways, the order alternating, for the pairs of these numbers; resumes from the log."""
    for number in pairs:
        if raw.find(pair=number):
            continue
        item = items[number % len(items)]
        ways = [("first", first), ("second", second)]
        answers = {name: way(item, number) for name, way in (ways if number % 2 == 0 else ways[::-1])}
        row = {
            "pair": number,
            "item": item.id,
            "same": answers["first"].token_ids == answers["second"].token_ids,
        }
        raw.add(row | {name: answer.to_json() for name, answer in answers.items()})
        print(
            f"[{number + 1}] {answers['first'].wall_s:.2f} s, {answers['second'].wall_s:.2f} s",
            file=sys.stderr,
        )


def plain_chat_way(server: Server, client: httpx.Client, max_tokens: int, rest: Rest) -> Way:
    """The conversation without its tools, its prompt's KV warmed, when all servers are asleep."""

    def answer(item: Item, _: int) -> Answer:
        body = chat_body(server.model, replace(item, tools=[]), max_tokens=max_tokens)
        ask(client, server.url, body | {"max_tokens": 1})
        rest.after()
        rest.before()
        timed = ask(client, server.url, body)
        rest.after()
        return timed

    return answer


def first_token_way(server: Server, client: httpx.Client, drafting: str, cached: bool) -> Way:
    """A streamed request with tools, of which only the first tokens matter."""

    def answer(item: Item, number: int) -> Answer:
        body = chat_body(server.model, item, tool_choice="required", max_tokens=8, stream=True)
        if cached:
            warm = {key: value for key, value in body.items() if key != "stream_options"}
            warm |= {"max_tokens": 1, "stream": False}
            ask(client, server.url, with_xargs(warm, {"ooospec": "off"}))
        else:
            body["cache_salt"] = f"{drafting}/{number}"
        scope = {"ooospec_scope": uuid.uuid4().hex, "ooospec_report": 1}
        return ask(client, server.url, with_xargs(body, {"ooospec": drafting, **scope}))

    return answer


def _ratio(raw: RawLog, pairs: int, key: str) -> dict[str, Any]:
    rows = [row for row in raw.rows if row["pair"] < pairs]
    ratio = ratio_of_totals([row["first"][key] for row in rows], [row["second"][key] for row in rows])
    return asdict(ratio) | {"pairs": len(rows), "same": sum(row["same"] for row in rows) / len(rows)}


app = typer.Typer(add_completion=False)
Model = Annotated[str, typer.Option(help="Target model: name or folder.")]
Data = Annotated[Path, typer.Option(help="JSONL file or folder of such files.")]
Out = Annotated[Path, typer.Option(help="Result JSON; raw requests stand beside it as .jsonl.")]


@app.command()
def chat(
    model: Model, data: Data, out: Out, pairs: int = 200, max_tokens: int = 32, dtype: str = "",
    cores: str = "0-1", logs: Path = Path("out/logs"),
) -> None:  # fmt: skip
    """Plain chat: total seconds of stock vLLM over ours. Passes where the lower end is at least 0.97.

    After every hundred pairs both are started anew, in the other order: the first has the better choice of memory.
    """
    options = {"chat": model, "max_tokens": max_tokens, "dtype": dtype, "cores": cores, "rest_s": WATCH_S}
    raw = RawLog(out.with_suffix(".jsonl"), options)
    setup = Setup(model, dtype=dtype, cores=cores)
    orders: list[list[Start]] = [[stock, ours], [ours, stock]]
    for begin in range(0, pairs, BLOCK):
        block = range(begin, min(begin + BLOCK, pairs))
        started = orders[begin // BLOCK % 2]
        if all(raw.find(pair=number) for number in block):
            continue
        with ExitStack() as stack:
            servers = {start: stack.enter_context(start(setup, logs)) for start in started}
            client = stack.enter_context(httpx.Client(timeout=600, limits=LIMITS))
            rest = Rest()
            ways = [plain_chat_way(servers[start], client, max_tokens, rest) for start in (stock, ours)]
            alternate(load(data), block, ways[0], ways[1], raw)
    result = {"target": model, "dtype": setup.dtype_used, "what": "plain chat, stock over ours"}
    result |= _ratio(raw, pairs, "wall_s")
    save(out, "overhead", result)
    print(f"{result['value']:.3f} [{result['low']:.3f}, {result['high']:.3f}]")


@app.command()
def first_token(
    model: Model, data: Data, out: Out, pairs: int = 60, dtype: str = "",
    sidecar_model: str = "SmolLM2-135M-Instruct", cores: str = "0", sidecar_cores: str = "1",
    cached: Annotated[bool, typer.Option(help="Warm each prompt's KV first.")] = False,
    logs: Path = Path("out/logs"),
) -> None:  # fmt: skip
    """Time to first token with the sidecar on over off, target and sidecar on cores of their own."""
    raw = RawLog(
        out.with_suffix(".jsonl"),
        {
            "first_token": model,
            "dtype": dtype,
            "cores": [cores, sidecar_cores],
            "sidecar": sidecar_model,
            "cached": cached,
        },
    )
    setup = Setup(model, dtype=dtype, cores=cores)
    with ExitStack() as stack:
        helper = stack.enter_context(
            sidecar(SidecarSetup(sidecar_model, adapter_for(sidecar_model), sidecar_cores), logs)
        )
        own = stack.enter_context(ours(setup, logs, helper))
        client = stack.enter_context(httpx.Client(timeout=600, limits=LIMITS))
        ways = [first_token_way(own, client, drafting, cached) for drafting in ("ooospec", "lexical")]
        alternate(load(data), range(pairs), ways[0], ways[1], raw)
    what = f"time to first token, sidecar on over off, prompts {'cached' if cached else 'not cached'}"
    waves = sum(bool(((row["first"]["report"] or {}).get("hint") or {}).get("arrived")) for row in raw.rows)
    result = {"target": model, "dtype": setup.dtype_used, "what": what, "hints_seen": waves}
    result |= _ratio(raw, pairs, "first_s")
    save(out, "overhead", result)
    print(f"{result['value']:.3f} [{result['low']:.3f}, {result['high']:.3f}]")


if __name__ == "__main__":
    app()
