"""What a draft costs: milliseconds of commit and draft together, on a long output of many calls with many tools.

"hot" is the drafter alone, step upon step. In a server the model's weights go through the processor's caches between
two drafts; "cold" reads as much memory before each step. The same steps are taken several times, each counts with the
median of its times: what a machine does beside them belongs to no step.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Annotated, Any

import typer

from ooospec_agents.bench.own import load_own
from ooospec_agents.bench.redraft import codec_of
from ooospec_agents.bench.summary import save
from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.budget import Budget
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.drafter import Drafter, TokenCodec
from ooospec_agents.drafting.guesses import Guesser
from ooospec_agents.drafting.memory import Stores
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.formats import FORMATS
from ooospec_agents.hint import CallHint, Hint, SlotHint
from ooospec_agents.weights import resolve

FORMAT = "hermes"
WIDTH = 40
STOP_ID = 0
SWEEP_MB = 64
"""Memory read before a cold step: more than the caches of most processors."""
HINTED_CALLS = 8


@dataclass(frozen=True)
class Load:
    """What is drafted for.

    Attributes:
        spec: A request with many tools.
        token_ids: The output that the target will write.
        start: Tokens of it that are committed before steps are timed.
        hint: A right hint of its first calls.
    """

    spec: RequestSpec
    token_ids: Sequence[int]
    start: int
    hint: Hint


def load(codec: TokenCodec, tools: int, committed: int, calls: int) -> Load:
    """A request of the package's own set: `tools` tools, `committed` tokens written, `calls` calls to come."""
    items = [item for item in load_own() if item.gold]
    bound = list({tool["function"]["name"]: tool for item in items for tool in item.tools}.values())
    kinds = [_renamed(bound[at % len(bound)], at // len(bound)) for at in range(tools)]
    conversation = conversation_text([message for item in items[:12] for message in item.messages])
    catalog = Catalog.from_tools(kinds)
    known = {function.name for function in catalog.functions}
    gold = [(call["name"], call["arguments"]) for item in items for call in item.gold if call["name"] in known]
    written: list[tuple[str, dict[str, Any]]] = []
    start = 0
    for call in cycle(gold):
        text = "".join(segment.text for segment in FORMATS[FORMAT].write(written))
        start = len(codec.encode(text))
        if start >= committed:
            break
        written.append(call)
    whole = written + gold[:calls]
    spec = RequestSpec(
        id="speed",
        method="ooospec",
        wire_format=FORMAT,
        catalog=catalog,
        parallel=True,
        conversation=conversation,
        guesses=Guesser(catalog, conversation).all(),
    )
    slots = [
        CallHint(name=name, confidence=0.8, slots={k: SlotHint(value=v, confidence=0.8) for k, v in values.items()})
        for name, values in whole[:HINTED_CALLS]
    ]
    output = codec.encode("".join(segment.text for segment in FORMATS[FORMAT].write(whole)))
    return Load(spec, [*output, STOP_ID], start, Hint(calls=tuple(slots)))


def _renamed(tool: dict[str, Any], copy: int) -> dict[str, Any]:
    function = tool["function"]
    return {**tool, "function": {**function, "name": f"{function['name']}_{copy}" if copy else function["name"]}}


def steps(codec: TokenCodec, work: Load, hinted: bool, cold: bool) -> Iterator[float]:
    """Seconds of each step behind the committed tokens: the ids that came, then the next draft."""
    memory = bytearray(SWEEP_MB * 2**20 if cold else 0)
    drafter = Drafter(work.spec, codec, Stores(), stop_ids=[STOP_ID], budget=Budget())
    drafter.think()  # as the worker's thread does before the first token
    if hinted:
        drafter.offer(work.hint, 0.0)
    drafter.commit(work.token_ids[: work.start])
    draft = drafter.draft(WIDTH).tokens
    at = work.start
    while at < len(work.token_ids) - 1:
        came = work.token_ids[at : at + WIDTH + 1]
        right = next((n for n, token in enumerate(draft) if n >= len(came) - 1 or token != came[n]), len(draft))
        at += right + 1
        if cold:
            bytes(memory)
        began = time.perf_counter()
        drafter.commit(came[: right + 1])
        draft = drafter.draft(WIDTH).tokens
        yield time.perf_counter() - began


def main(
    model: Annotated[str, typer.Option(help="Model whose tokenizer is used: name or folder.")],
    out: Annotated[Path, typer.Option(help="Result JSON.")] = Path("out/drafting-speed.json"),
    tools: Annotated[int, typer.Option(help="Tools bound.")] = 50,
    committed: Annotated[int, typer.Option(help="Output tokens already there.")] = 2000,
    calls: Annotated[int, typer.Option(help="Calls that follow.")] = 120,
    repeats: Annotated[int, typer.Option(help="Times that each step is taken.")] = 5,
) -> None:
    """Milliseconds of a step's drafting: mean, median and 99th percentile."""
    codec, _ = codec_of(resolve(model))
    work = load(codec, tools, committed, calls)
    rows = []
    for hinted in (False, True):
        for cold in (False, True):
            runs = [steps(codec, work, hinted, cold) for _ in range(repeats)]
            took = [median(times) * 1e3 for times in zip(*runs, strict=True)]
            cuts = quantiles(took, n=100)
            row = {"hinted": hinted, "cold": cold, "steps": len(took), "mean_ms": mean(took)}
            rows.append({**row, "p50_ms": cuts[49], "p99_ms": cuts[98]})
            typer.echo(f"{rows[-1]}")
    about = {"target": model, "tools": tools, "committed": committed, "repeats": repeats, "rows": rows}
    save(out, "drafting_speed", about)


if __name__ == "__main__":
    typer.run(main)
