"""Several requests at once: tokens a second of ours against stock vLLM's, level by level, and preemptions of both.

A round sends the same requests to each server, one server after the other in alternating order. Prompts' KV is cached
beforehand, so that decoding is compared; stores are empty at each round. Where memory does not hold both servers,
`--plain off` compares with our own server while it drafts nothing.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
import typer

from ooospec_agents.bench.data import Item, load
from ooospec_agents.bench.progress import TimeLeft
from ooospec_agents.bench.rawlog import RawLog
from ooospec_agents.bench.requests import LIMITS, Answer, ask, chat_body, with_xargs
from ooospec_agents.bench.servers import Server, Setup, ours, stock
from ooospec_agents.bench.stats import ratio_of_totals
from ooospec_agents.bench.summary import save

LEVELS = (1, 2, 4, 8, 16)
"""Requests at once."""
Plain = Literal["stock", "off"]
"""What ours is compared with: stock vLLM, or our own server while it drafts nothing."""
PREEMPTIONS = re.compile(r"^vllm:num_preemptions_total\{.*\} ([0-9.e+]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Way:
    """One server and how it is asked to draft; its name in the results."""

    name: str
    server: Server
    drafting: str = ""

    def xargs(self) -> dict[str, Any]:
        """The `vllm_xargs` of a timed request: stores of its own, so that nothing is learned between rounds."""
        return {"ooospec": self.drafting, "ooospec_scope": uuid.uuid4().hex} if self.drafting else {}


@dataclass(frozen=True)
class Sending:
    """What is the same of all requests of a run."""

    client: httpx.Client
    tool_choice: str
    max_tokens: int

    def body(self, way: Way, item: Item) -> dict[str, Any]:
        """A request to a server, without what asks for drafts."""
        return chat_body(way.server.model, item, tool_choice=self.tool_choice, max_tokens=self.max_tokens)

    def warm(self, way: Way, item: Item) -> None:
        """Have the prompt's KV cached; nothing is drafted or learned."""
        body = self.body(way, item) | {"max_tokens": 1}
        ask(self.client, way.server.url, with_xargs(body, {"ooospec": "off"} if way.drafting else {}))

    def at_once(self, way: Way, items: Sequence[Item]) -> tuple[float, list[Answer]]:
        """Send all at the same time; seconds until the last is answered, and the answers."""
        xargs = way.xargs()
        bodies = [with_xargs(self.body(way, item), xargs) for item in items]
        with ThreadPoolExecutor(len(items)) as pool:
            began = time.perf_counter()
            answers = list(pool.map(lambda body: ask(self.client, way.server.url, body), bodies))
            return time.perf_counter() - began, answers


def preemptions(client: httpx.Client, server: Server) -> int:
    """Requests that the server has preempted so far, as its own metrics count them."""
    text = client.get(f"{server.url}/metrics").text
    return round(sum(float(count) for count in PREEMPTIONS.findall(text)))


def run(
    ways: Sequence[Way], items: Sequence[Item], rounds: int, sending: Sending, raw: RawLog, progress: TimeLeft
) -> None:
    """All rounds of all levels; those that stand in the log are not repeated."""
    for level in LEVELS:
        for number in range(rounds):
            if raw.find(level=level, round=number):
                continue
            chosen = [items[(number * level + at) % len(items)] for at in range(level)]
            row: dict[str, Any] = {"level": level, "round": number}
            answers: dict[str, list[Answer]] = {}
            for way in ways if number % 2 == 0 else ways[::-1]:
                for item in chosen:
                    sending.warm(way, item)
                before = preemptions(sending.client, way.server)
                seconds, answers[way.name] = sending.at_once(way, chosen)
                tokens = sum(len(answer.token_ids) for answer in answers[way.name])
                preempted = preemptions(sending.client, way.server) - before
                row[way.name] = {"seconds": seconds, "tokens": tokens, "preempted": preempted}
            first, second = (answers[way.name] for way in ways)
            row["same"] = sum(a.token_ids == b.token_ids for a, b in zip(first, second, strict=True))
            raw.add(row)
            progress.say(f"{level} at once, round {number + 1}")


def figures(rows: Sequence[Mapping[str, Any]], first: str, second: str) -> list[dict[str, Any]]:
    """By level: tokens a second of both, their ratio with its interval, preemptions, and outputs that agree."""
    found = []
    for level in sorted({int(row["level"]) for row in rows}):
        mine = [row for row in rows if row["level"] == level]
        # Seconds a token, so that a ratio of totals is one of tokens a second; outputs are the same on both sides.
        ratio = ratio_of_totals(
            [row[first]["seconds"] / row[first]["tokens"] for row in mine],
            [row[second]["seconds"] / row[second]["tokens"] for row in mine],
        )
        entry: dict[str, Any] = {"at_once": level, "rounds": len(mine), **asdict(ratio)}
        for name in (first, second):
            total = sum(row[name]["seconds"] for row in mine)
            entry[f"{name}_tokens_s"] = sum(row[name]["tokens"] for row in mine) / total
            entry[f"{name}_preempted"] = sum(row[name]["preempted"] for row in mine)
        entry["identical"] = sum(row["same"] for row in mine) / (level * len(mine))
        found.append(entry)
    return found


def compared(stack: ExitStack, setup: Setup, logs: Path, plain: Plain, drafting: str) -> list[Way]:
    """What is compared with ours, and ours, on servers that end with the stack."""
    first = stack.enter_context(stock(setup, logs)) if plain == "stock" else None
    server = stack.enter_context(ours(setup, logs))
    return [Way("plain", first) if first else Way("plain", server, "off"), Way("ours", server, drafting)]


def main(
    model: Annotated[str, typer.Option(help="Target model: name or folder.")],
    data: Annotated[Path, typer.Option(help="JSONL file or folder of such files.")],
    out: Annotated[Path, typer.Option(help="Result JSON; raw rounds stand beside it as .jsonl.")],
    drafting: Annotated[str, typer.Option(help="How ours drafts: toolspec or lexical.")] = "lexical",
    plain: Annotated[Plain, typer.Option(help="What ours is compared with.")] = "stock",
    tool_choice: Annotated[str, typer.Option(help="auto or required.")] = "required",
    rounds: Annotated[int, typer.Option(help="Rounds of each level.")] = 4,
    max_tokens: Annotated[int, typer.Option(help="Longest output.")] = 64,
    limit: Annotated[int, typer.Option(help="Requests used, the shortest first.")] = 24,
    dtype: Annotated[str, typer.Option(help="vLLM's --dtype.")] = "",
    cores: Annotated[str, typer.Option(help="Cores of both servers.")] = "0-1",
    logs: Annotated[Path, typer.Option(help="Folder of the servers' logs.")] = Path("out/logs"),
) -> None:
    """Tokens a second at 1, 2, 4, 8 and 16 requests at once, ours over stock vLLM or over our server not drafting."""
    options = {"load": model, "drafting": drafting, "tool_choice": tool_choice, "max_tokens": max_tokens}
    options |= {"plain": plain, "limit": limit, "dtype": dtype, "cores": cores}
    raw = RawLog(out.with_suffix(".jsonl"), options)
    setup = Setup(model, dtype=dtype, cores=cores, extra=("--max-num-seqs", str(max(LEVELS))))
    items = load(data, limit, shortest=True)
    with ExitStack() as stack:
        ways = compared(stack, setup, logs, plain, drafting)
        limits = httpx.Limits(max_connections=2 * max(LEVELS), keepalive_expiry=LIMITS.keepalive_expiry)
        client = stack.enter_context(httpx.Client(timeout=600, limits=limits, trust_env=False))
        progress = TimeLeft(len(LEVELS) * rounds, len(raw.rows))
        run(ways, items, rounds, Sending(client, tool_choice, max_tokens), raw, progress)
    found = figures(raw.rows, "plain", "ours")
    facts = {"target": model, "dtype": setup.dtype_used, "cores": cores, "tool_choice": tool_choice}
    save(out, "load", {**facts, "drafting": drafting, "plain": plain, "rows": found})
    for entry in found:
        typer.echo(f"{entry['at_once']:3} at once: {entry['value']:.2f} [{entry['low']:.2f}, {entry['high']:.2f}]")


if __name__ == "__main__":
    typer.run(main)
