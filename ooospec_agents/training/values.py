"""Fits the weights by which spans are chosen as values without a model: `python -m ooospec_agents.training.values`.

A conditional logit on the references and on what a target called: of each slot of a called function, the candidates
that are the value it got share the right answer, or none of them is right. Dialogues are made longer as for the
functions' weights, and values are told one after another.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.sources.candidates import Feature, candidates
from ooospec_agents.drafting.sources.lexical import LexicalValues
from ooospec_agents.drafting.sources.span_fit import SpanFit
from ooospec_agents.drafting.sources.wanted import Wanted
from ooospec_agents.files import replacing
from ooospec_agents.strict_json import same
from ooospec_agents.training.dialogues import longer, told
from ooospec_agents.training.traces import (
    Call,
    DataError,
    Request,
    digests,
    read_training,
)

WEIGHTS = Path(__file__).parents[1] / "drafting" / "sources" / "span_weights.json"
TRACED, MADE, TOLD = 1.5, 0.7, 0.5
"""Weights of what a target called, of longer dialogues and of told values, beside a data set's reference."""
PENALTY = 1.0
"""Of the squared weights."""
STEPS = 80
ALL_PLACES = 1024
"""None is left out while the weights are fitted by which some are."""
RAREST = 8
"""Slots in which a feature must be met to be kept."""


@dataclass(frozen=True)
class SlotChoice:
    """One slot of a call, as a choice among its candidates.

    Attributes:
        rows: Features of each candidate, and last of there being none.
        right: Indexes of those that are right.
        weight: How much it counts.
    """

    rows: Sequence[Sequence[Feature]]
    right: frozenset[int]
    weight: float = 1.0


def choices_of(request: Request, weight: float = 1.0) -> Iterator[SlotChoice]:
    """The slots of the request's first call, each as a choice; nothing where no bound function is called."""
    function = Catalog.from_tools(list(request.tools)).function(request.calls[0].name) if request.calls else None
    if function is None:
        return
    fit, given = SpanFit(conversation_text(request.messages), ALL_PLACES), request.calls[0].arguments
    for wanted in Wanted.of(function):
        rows = [list(fit.fixed(place, wanted)) for place in fit.places]
        for at, feature in fit.details(wanted, function):
            rows[at].append(feature)
        name, found = wanted.slot.name, list(candidates(fit.reading, fit.places, wanted))
        features = [[*(rows[one.place] if one.place >= 0 else ()), *one.features] for one in found]
        right = [at for at, one in enumerate(found) if name in given and same(one.value, given[name])]
        yield SlotChoice([*features, list(fit.none(wanted))], frozenset(right or [len(found)]), weight)


def choices(
    requests: Sequence[Request], traces: Mapping[str, tuple[Call, ...]], rng: random.Random
) -> Iterator[SlotChoice]:
    """The slots of every request as it is, as the end of a longer dialogue, and of every second one as told."""
    for at, request in enumerate(requests):
        calls = traces.get(request.id) or request.calls
        if not calls:
            continue
        asked = Request(request.id, request.source, request.messages, request.tools, calls)
        yield from choices_of(asked, TRACED if traces.get(request.id) else 1.0)
        if at % 2 == 0 and (dialogue := told(calls[0], asked, rng.choice(requests), rng)) is not None:
            yield from choices_of(dialogue, TOLD)
        if at % 3 != 2:  # where something else is asked for at last, the values are other ones
            yield from choices_of(longer(at, asked, rng.choice(requests), rng), MADE)


def fit(made: Sequence[SlotChoice], rarest: int = RAREST) -> dict[str, float]:
    """The weights under which the right candidates are likeliest, by feature.

    Args:
        made: The slots.
        rarest: In how many of them a feature must be met to be kept.
    """
    met = Counter(name for choice in made for name in {name for row in choice.rows for name, _ in row})
    index = {name: at for at, name in enumerate(sorted(name for name, count in met.items() if count >= rarest))}
    rows: list[int] = []
    columns: list[int] = []
    amounts: list[float] = []
    of_choice: list[int] = []
    right: list[bool] = []
    for at, choice in enumerate(made):
        for candidate, row in enumerate(choice.rows):
            for name, amount in row:
                if name in index:
                    rows.append(len(of_choice))
                    columns.append(index[name])
                    amounts.append(amount)
            of_choice.append(at)
            right.append(candidate in choice.right)
    shape = (len(of_choice), len(index))
    features = torch.sparse_coo_tensor([rows, columns], amounts, shape, dtype=torch.float64, check_invariants=True)
    owner, is_right = torch.tensor(of_choice), torch.tensor(right)
    counts = torch.tensor([choice.weight for choice in made], dtype=torch.float64)
    weights = torch.zeros(len(index), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def mass(scores: torch.Tensor, top: torch.Tensor) -> torch.Tensor:
        """Logarithm of the sum of each choice's exponentials, less its top."""
        return torch.zeros(len(made), dtype=torch.float64).scatter_add(0, owner, (scores - top[owner]).exp()).log()

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        scores = torch.sparse.mm(features, weights.unsqueeze(1)).squeeze(1)
        lowest = torch.full((len(made),), -torch.inf, dtype=torch.float64)
        top = lowest.scatter_reduce(0, owner, scores.detach().masked_fill(~is_right, -torch.inf), "amax")
        each = mass(scores, top) - mass(scores.masked_fill(~is_right, -torch.inf), top)
        total = (each * counts).sum() + PENALTY * weights.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    return dict(zip(index, weights.detach().tolist(), strict=True))


def accuracy(requests: Iterable[Request]) -> tuple[int, int]:
    """Of single values in the requests' first calls: how many are guessed first, and how many there are."""
    right = asked = 0
    for request in requests:
        function = Catalog.from_tools(list(request.tools)).function(request.calls[0].name) if request.calls else None
        if function is None:
            continue
        lexical = LexicalValues(conversation_text(request.messages))
        for slot in function.slots:
            if request.calls[0].arguments.get(slot.name) is not None:
                guesses = lexical.guesses(slot, function)[:1]
                asked += 1
                right += any(same(guess.value, request.calls[0].arguments[slot.name]) for guess in guesses)
    return right, asked


def main(
    requests: Annotated[Path, typer.Option(help="Requests with the data sets' references, JSON Lines.")],
    evaluation: Annotated[Path, typer.Option("--eval", help="Evaluation sets: their functions are refused.")],
    traces: Annotated[Path | None, typer.Option(help="What a target called for these requests.")] = None,
    out: Annotated[Path, typer.Option(help="File of the weights.")] = WEIGHTS,
) -> None:
    """Fit the weights and write them down, with what they were fitted to."""
    try:
        asked, called = read_training(requests, traces, evaluation)
    except (DataError, OSError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    made = list(choices(asked, called, random.Random(0)))
    if not made:
        typer.echo(
            f"ooospec: {str(requests)!r} holds no request that calls a bound function with parameters.", err=True
        )
        raise typer.Exit(1)
    weights = fit(made)
    written: dict[str, Any] = {
        "weights": {name: round(weight, 3) for name, weight in weights.items()},
        "slots": len(made),
        "inputs": digests(requests, traces),
    }
    with replacing(out) as partial:
        partial.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    typer.echo(f"{len(made)} slots, {len(weights)} features")


if __name__ == "__main__":
    typer.run(main)
