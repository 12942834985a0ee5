"""Fits the weights by which a sidecar's answers and lexical guesses are joined, by `python -m` with this module's name.

The sidecar answers requests whose functions it was not trained on; of each slot of the called function, the value that
is right, the sidecar's or a lexical one, is the choice, or that none is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.sources.span_fit import SpanFit
from ooospec_agents.drafting.sources.wanted import Wanted
from ooospec_agents.files import replacing
from ooospec_agents.sidecar.slots import FEATURES, rows
from ooospec_agents.strict_json import same
from ooospec_agents.training.card import Outcome, said_of
from ooospec_agents.training.evaluate import requests_of, run_waves
from ooospec_agents.training.settings import PRESETS
from ooospec_agents.training.traces import DataError, digests, read_training
from ooospec_agents.training.values import SlotChoice, fit

WEIGHTS = Path(__file__).parents[1] / "sidecar" / "slot_weights.json"


def choices_of(outcome: Outcome) -> Iterator[SlotChoice]:
    """The slots of the request's first call, each as a choice; nothing where no bound function is called."""
    request = outcome.request
    function = Catalog.from_tools(list(request.tools)).function(request.calls[0].name) if request.calls else None
    if function is None:
        return
    given, said = request.calls[0].arguments, said_of(outcome.hint, function.name)
    lexical = SpanFit(conversation_text(request.messages)).of(function)
    for wanted in Wanted.of(function):
        name = wanted.slot.name
        if name not in lexical:
            continue
        found = list(rows(said.get(name), lexical[name], wanted.kind))
        last = len(found) - 1
        right = [at for at, (value, _) in enumerate(found[:-1]) if name in given and same(value, given[name])]
        yield SlotChoice([list(features.items()) for _, features in found], frozenset(right or [last]))


def weights_of(outcomes: Sequence[Outcome]) -> tuple[dict[str, float], int]:
    """The weights that fit these answers, and how many slots they were fitted to."""
    made = [choice for outcome in outcomes for choice in choices_of(outcome)]
    weights = fit(made, rarest=1) if made else {}
    return {name: round(weights.get(name, 0.0), 4) for name in FEATURES}, len(made)


def main(
    requests: Annotated[Path, typer.Option(help="Requests of functions that the sidecar was not trained on.")],
    evaluation: Annotated[Path, typer.Option("--eval", help="Evaluation sets: their functions are refused.")],
    base: Annotated[str, typer.Option(help="Base model of the sidecar.")] = PRESETS["smollm2-135m"].base,
    adapter: Annotated[str | None, typer.Option(help="Its adapter, or none; by default the package's.")] = None,
    limit: Annotated[int | None, typer.Option(help="Requests to ask, a fixed sample; by default all.")] = None,
    out: Annotated[Path, typer.Option(help="File of the weights.")] = WEIGHTS,
) -> None:
    """Ask the sidecar, fit the weights and write them down, with what they were fitted to."""
    from ooospec_agents.sidecar.adapters import adapter_for
    from ooospec_agents.training.local import LocalBackend
    from ooospec_agents.weights import resolve

    console = Console()
    try:
        read_training(requests, None, evaluation)
        asked = requests_of(requests, limit)
        folder = adapter_for(base, adapter)
        backend = LocalBackend(resolve(base), Path(folder) if folder else None)
    except (DataError, ValueError, OSError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    outcomes = asyncio.run(run_waves(backend, asked, console, required=True, by_itself=True))
    weights, slots = weights_of(outcomes)
    written: dict[str, Any] = {
        "weights": weights,
        "slots": slots,
        "base": base,
        "inputs": digests(requests, Path(folder) / "adapter_model.safetensors" if folder else None),
    }
    with replacing(out) as partial:
        partial.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    console.print(f"{slots} slots")


if __name__ == "__main__":
    typer.run(main)
