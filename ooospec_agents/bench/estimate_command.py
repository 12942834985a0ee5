"""The command line of `ooospec estimate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ooospec_agents.bench.data import DataError
from ooospec_agents.bench.estimate import SIDECAR_QUALITY, STOP, RoughCodec, estimate, table_of, to_json, verdict
from ooospec_agents.bench.redraft import codec_of
from ooospec_agents.bench.traffic import read_traffic
from ooospec_agents.drafting.budget import DEFAULT_PRICE
from ooospec_agents.formats import FORMATS
from ooospec_agents.weights import WeightsError, resolve


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
