"""Fits the weights by which functions are ranked without a model: `python -m ooospec_agents.training.functions`.

A conditional logit on the references and on what a target called. Most data sets have dialogues of one turn, so longer
ones are made of them: another request was met before, with its functions bound as well; a value is asked for and given
last; the same is wanted again for something else; values are told one after another.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.sources.functions import FEATURES, features
from ooospec_agents.files import replacing
from ooospec_agents.training.dialogues import longer, told
from ooospec_agents.training.rows import tool_name
from ooospec_agents.training.traces import (
    Call,
    DataError,
    Request,
    digests,
    read_requests,
    read_training,
)

WEIGHTS = Path(__file__).parents[1] / "drafting" / "sources" / "function_weights.json"
TRACED, TOLD = 1.5, 0.5
"""Weights of what a target called and of told values, beside a data set's reference."""
MORE_TOOLS = 3
"""Functions of another request that are bound as well where values are told, at most."""
PENALTY = 2.0
"""Of the squared weights, each in units of its feature's spread."""
STEPS = 60


@dataclass(frozen=True)
class Choice:
    """One request, as a choice among its functions.

    Attributes:
        rows: Features of each function.
        right: Index of the one that is called.
        weight: How much it counts.
    """

    rows: Sequence[Sequence[float]]
    right: int
    weight: float = 1.0


def choice_of(request: Request, weight: float = 1.0) -> Choice | None:
    """The request's first call as a choice; None where there is nothing to choose, or nothing bound is called."""
    catalog = Catalog.from_tools(list(request.tools))
    names = [function.name for function in catalog.functions]
    if len(names) < 2 or not request.calls or request.calls[0].name not in names:
        return None
    rows = features(catalog, conversation_text(request.messages))
    return Choice(rows, names.index(request.calls[0].name), weight)


def choices(
    requests: Sequence[Request], traces: Mapping[str, tuple[Call, ...]], rng: random.Random
) -> Iterator[Choice]:
    """Every request as it is, as the end of a longer dialogue, and with its values told one after another."""
    for at, request in enumerate(requests):
        traced = traces.get(request.id)
        asked = replace(request, calls=traced) if traced else request
        made = [choice_of(asked, TRACED if traced else 1.0)]
        if request.calls:
            made.append(choice_of(longer(at, request, rng.choice(requests), rng)))
        other = rng.choice(requests)
        if asked.calls and (dialogue := told(asked.calls[0], asked, other, rng)) is not None:
            made.append(choice_of(with_tools(dialogue, other, rng), TOLD))
        yield from (choice for choice in made if choice is not None)


def with_tools(request: Request, other: Request, rng: random.Random) -> Request:
    """The request, with functions of another one bound as well, in any order."""
    names = set(map(tool_name, request.tools))
    tools = [*request.tools, *[tool for tool in other.tools if tool_name(tool) not in names][:MORE_TOOLS]]
    rng.shuffle(tools)
    return replace(request, tools=tuple(tools))


def fit(made: Sequence[Choice]) -> list[float]:
    """The weights under which the right choices are likeliest, one for each feature."""
    most = max(len(choice.rows) for choice in made)
    rows = torch.zeros(len(made), most, len(FEATURES), dtype=torch.float64)
    closed = torch.full((len(made), most), -1e9, dtype=torch.float64)
    for at, choice in enumerate(made):
        rows[at, : len(choice.rows)] = torch.tensor(choice.rows, dtype=torch.float64)
        closed[at, : len(choice.rows)] = 0.0
    spread = rows[closed == 0].std(0) + 1e-9
    right = torch.tensor([choice.right for choice in made])
    counts = torch.tensor([choice.weight for choice in made], dtype=torch.float64)
    weights = torch.zeros(len(FEATURES), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        each = torch.nn.functional.cross_entropy((rows / spread) @ weights + closed, right, reduction="none")
        total = (each * counts).sum() + PENALTY * weights.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    found: list[float] = (weights.detach() / spread).tolist()
    return found


def accuracy(made: Sequence[Choice], weights: Sequence[float]) -> float:
    """Share of choices whose right function comes first."""
    right = 0
    for choice in made:
        scores = [sum(a * b for a, b in zip(weights, row, strict=True)) for row in choice.rows]
        right += scores.index(max(scores)) == choice.right
    return right / len(made)


def main(
    requests: Annotated[Path, typer.Option(help="Requests with the data sets' references, JSON Lines.")],
    evaluation: Annotated[Path, typer.Option("--eval", help="Evaluation sets: their functions are refused.")],
    traces: Annotated[Path | None, typer.Option(help="What a target called for these requests.")] = None,
    dev: Annotated[Path | None, typer.Option(help="Requests to show the share of right choices on.")] = None,
    out: Annotated[Path, typer.Option(help="File of the weights.")] = WEIGHTS,
) -> None:
    """Fit the weights and write them down, with what they were fitted to."""
    try:
        asked, called = read_training(requests, traces, evaluation)
        tested = read_requests(dev) if dev else []
    except (DataError, OSError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    made = list(choices(asked, called, random.Random(0)))
    if not made:
        typer.echo(f"ooospec: {str(requests)!r} holds no request with a call and two functions or more.", err=True)
        raise typer.Exit(1)
    weights = fit(made)
    written: dict[str, Any] = {
        "weights": {name: round(weight, 4) for name, weight in zip(FEATURES, weights, strict=True)},
        "choices": len(made),
        "inputs": digests(requests, traces),
    }
    with replacing(out) as partial:
        partial.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    typer.echo(f"{len(made)} choices, right {accuracy(made, weights):.1%}")
    shown = [choice for choice in map(choice_of, tested) if choice is not None]
    if shown:
        typer.echo(f"{len(shown)} other choices, right {accuracy(shown, weights):.1%}")


if __name__ == "__main__":
    typer.run(main)
