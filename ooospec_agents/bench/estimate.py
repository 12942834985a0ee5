"""`ooospec estimate FILE`: what drafting would bring to a user's own traffic, without a GPU or a server.

Answers of the past are written as a target would have, and drafted again by each method (`redraft.py`). So the number
of steps is the drafter's own; what a step costs is an assumption that is printed with the result. Tokens are those of
a tokenizer if one is named, else pieces of words that come near to what tokenizers make.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ooospec_agents.bench.data import DataError, Item
from ooospec_agents.bench.hints import degraded_hint, hint_of
from ooospec_agents.bench.redraft import Recorded, Redrafter, codec_of
from ooospec_agents.bench.traffic import Exchange, Traffic, read_traffic
from ooospec_agents.drafting.budget import DEFAULT_PRICE
from ooospec_agents.drafting.drafter import TokenCodec
from ooospec_agents.drafting.request import Method
from ooospec_agents.formats import FORMATS
from ooospec_agents.hint import Hint
from ooospec_agents.weights import WeightsError, resolve

SIDECAR_QUALITY = 0.64
"""Share of values that a small trained sidecar gets right, as published; what `ooospec` is reckoned with."""
WORTH_IT = 0.05
"""Share of a whole run under which nobody would notice."""
METHODS = ("toolspec", "lexical", "ooospec", "perfect hints")
STOP = 0
PIECE = re.compile(r" ?[^\W\d_]{1,6}|\d|_+| ?[^\w\s]{1,3}|\s+")


class RoughCodec:
    """Pieces of text that come near to tokens: words of up to six letters with the space before them, single digits."""

    vocab_size = 2**31

    def __init__(self) -> None:
        """Know nothing but the id that ends an output."""
        self._ids: dict[str, int] = {"": STOP}
        self._texts = [""]

    def encode(self, text: str) -> list[int]:
        """Ids of a text's pieces."""
        out = []
        for piece in PIECE.findall(text):
            if piece not in self._ids:
                self._ids[piece] = len(self._texts)
                self._texts.append(piece)
            out.append(self._ids[piece])
        return out

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids."""
        return "".join(self._texts[index] for index in ids)


@dataclass(frozen=True)
class Expected:
    """What is expected of one method.

    Attributes:
        method: Its name.
        steps: Steps of the target for all answers.
        seconds: Time of all steps, in steps of one token.
    """

    method: str
    steps: int
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """What traffic is made of, and what each method would make of it.

    Attributes:
        answers: Answers read.
        with_calls: Of them, those that call something.
        tokens: Output tokens.
        call_tokens: Of them, those in calls.
        methods: What is expected of each method.
        model_share: Share of a whole run's time that models take, or None where the file does not tell.
        unread: Records that could not be read.
    """

    answers: int
    with_calls: int
    tokens: int
    call_tokens: int
    methods: list[Expected]
    model_share: float | None
    unread: int

    def faster(self, expected: Expected) -> float:
        """How many times faster the target decodes by this method."""
        return self.tokens / expected.seconds if expected.seconds else 1.0

    def saved(self, expected: Expected) -> float:
        """Share of a whole run's time that this method saves, at most: prefill and waiting are not counted."""
        return (1 - 1 / self.faster(expected)) * (1.0 if self.model_share is None else self.model_share)


def estimate(
    traffic: Traffic,
    codec: TokenCodec,
    stop_ids: Sequence[int],
    *,
    wire_format: str = "hermes",
    price: float = DEFAULT_PRICE,
    seed: str = "0",
) -> Estimate:
    """Draft all answers again by all methods.

    Args:
        traffic: What was asked and answered.
        codec: The target's tokenizer, or one that comes near.
        stop_ids: Ids that end an output.
        wire_format: How the target writes calls.
        price: Cost of one more token in a step, in steps of one token.
        seed: Which values the assumed sidecar gets wrong.
    """
    outputs = [_written(exchange, codec, wire_format) for exchange in traffic.exchanges]
    tokens = sum(len(text) + len(calls) + 1 for text, calls in outputs)
    hidden = sum(exchange.reasoning_tokens for exchange in traffic.exchanges)
    methods = []
    for method in METHODS:
        drafter = Redrafter(codec, stop_ids)
        steps, seconds = hidden, float(hidden)
        for number, (exchange, (text, calls)) in enumerate(zip(traffic.exchanges, outputs, strict=True)):
            ids = [*text, *calls, stop_ids[0]]
            if not exchange.tools:  # nothing is drafted where no tools are bound
                steps, seconds = steps + len(ids), seconds + len(ids)
                continue
            made = drafter.steps(_recorded(exchange, number, ids, method, wire_format, seed))
            steps += len(made)
            seconds += sum(1 + price * step.drafted for step in made)
        methods.append(Expected(method, steps, seconds))
    called = sum(bool(exchange.calls) for exchange in traffic.exchanges)
    in_calls = sum(len(calls) for _, calls in outputs)
    return Estimate(len(outputs), called, tokens + hidden, in_calls, methods, _model_share(traffic), traffic.unread)


def _recorded(
    exchange: Exchange, number: int, ids: Sequence[int], method: str, wire_format: str, seed: str
) -> Recorded:
    item = Item(str(number), "traffic", exchange.messages, exchange.tools)
    calls = [(call["name"], call["arguments"]) for call in exchange.calls]
    hint: Hint | None = None
    if method == "perfect hints":
        hint = hint_of(calls)
    elif method == "ooospec" and calls:  # of text, a sidecar is not trusted to know that no call comes
        hint = degraded_hint(calls, item, SIDECAR_QUALITY, seed)
    drafting: Method = "toolspec" if method == "toolspec" else "lexical" if method == "lexical" else "ooospec"
    return Recorded(item, drafting, wire_format, False, ids, "", hint, 1)


def _written(exchange: Exchange, codec: TokenCodec, wire_format: str) -> tuple[list[int], list[int]]:
    """Token ids of an answer's text, and of its calls as a target writes them."""
    calls = [(call["name"], call["arguments"]) for call in exchange.calls]
    try:
        written = "".join(part.text for part in FORMATS[wire_format].write(calls)) if calls else ""
    except ValueError:
        written = json.dumps([call["arguments"] for call in exchange.calls], default=str)
    text = exchange.text + ("\n" if exchange.text and written else "")
    return codec.encode(text), codec.encode(written)


def _model_share(traffic: Traffic) -> float | None:
    """Share of the runs' time that models take, over runs of which both are known."""
    models: dict[str, float] = {}
    for exchange in traffic.exchanges:
        if exchange.seconds is not None and exchange.run in traffic.run_seconds:
            models[exchange.run] = models.get(exchange.run, 0.0) + exchange.seconds
    whole = sum(traffic.run_seconds[run] for run in models)
    return min(sum(models.values()) / whole, 1.0) if whole else None


def verdict(found: Estimate) -> str:
    """What to make of it, in a sentence or two."""
    expected = next(one for one in found.methods if one.method == "ooospec")
    saved, share = found.saved(expected), found.call_tokens / max(found.tokens, 1)
    if saved < WORTH_IT:
        return (
            f"This traffic would not gain: calls are {share:.0%} of its output tokens, and a whole run would be "
            f"{max(saved, 0.0):.1%} shorter at best."
        )
    of_runs = "" if found.model_share is not None else " if models take all of its time"
    return f"Expected: a whole run up to {saved:.0%} shorter{of_runs}; calls are {share:.0%} of the output tokens."


def table_of(found: Estimate) -> Table:
    """The methods side by side."""
    table = Table(title="Expected by method", title_justify="left")
    table.add_column("method")
    for name in ("steps", "tokens a step", "decoding", "of a whole run, at most"):
        table.add_column(name, justify="right")
    table.add_row("plain", str(found.tokens), "1.00", "1.00x", "")
    for one in found.methods:
        table.add_row(
            one.method, str(one.steps), f"{found.tokens / max(one.steps, 1):.2f}", f"{found.faster(one):.2f}x",
            f"{found.saved(one):.1%}",
        )  # fmt: skip
    return table


def to_json(found: Estimate) -> dict[str, Any]:
    """The estimate as data."""
    return {
        **{key: value for key, value in vars(found).items() if key != "methods"},
        "methods": [{**vars(one), "faster": found.faster(one), "saved": found.saved(one)} for one in found.methods],
        "verdict": verdict(found),
    }


def main(
    file: Annotated[Path, typer.Argument(help="Traffic: OpenAI-style JSONL, a LangSmith or a Langfuse export.")],
    tokenizer: Annotated[str, typer.Option(help="Model whose tokenizer counts; by default an approximation.")] = "",
    wire_format: Annotated[str, typer.Option(help=f"How the target writes calls: {', '.join(FORMATS)}.")] = "hermes",
    price: Annotated[
        float, typer.Option(help="Cost of one more token in a step, in steps of one; far less on a GPU than on a CPU.")
    ] = DEFAULT_PRICE,
    json_out: Annotated[Path | None, typer.Option("--json", help="File for the figures.")] = None,
) -> None:
    """Say what drafting would bring to traffic that you have recorded, and say so where it would bring nothing."""
    console = Console(highlight=False)
    try:
        if wire_format not in FORMATS:
            msg = f"Unknown wire format {wire_format!r}: use one of {', '.join(FORMATS)}."
            raise DataError(msg)
        traffic = read_traffic(file)
        if not traffic.exchanges:
            msg = f"{str(file)!r} holds no exchange with a model that could be read ({traffic.unread} other records)."
            raise DataError(msg)
        codec, stop_ids = codec_of(resolve(tokenizer)) if tokenizer else (RoughCodec(), (STOP,))
        found = estimate(traffic, codec, stop_ids, wire_format=wire_format, price=price)
    except (DataError, WeightsError, FileNotFoundError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    share = found.call_tokens / max(found.tokens, 1)
    console.print(f"{found.answers} answers, {found.with_calls} with calls; {found.unread} other records passed over.")
    console.print(f"{found.tokens} output tokens, {share:.1%} of them in calls.")
    if found.model_share is not None:
        console.print(f"Models take {found.model_share:.0%} of the time of a whole run.")
    console.print(table_of(found))
    console.print(
        f"Assumed: one more token in a step costs {price:g} steps; `ooospec` with a sidecar that gets "
        f"{SIDECAR_QUALITY:.0%} of the values right, in time for the first draft; `perfect hints` is a limit. Time to "
        "the first token and waiting are not counted, so savings are upper bounds."
    )
    console.print(verdict(found))
    if json_out is not None:
        json_out.write_text(json.dumps(to_json(found), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
