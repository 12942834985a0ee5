"""`ooospec explain RUN`: what each step of a recorded run was spent on, and the requests that took the most.

Recorded outputs are drafted again by the drafter at hand (`redraft.py`), so no server runs and a change of the drafter
is seen at once. A row of a run keeps its method, hint and the moment at which the hint was read; a plain recording can
be explained as if drafted by any method (`--as`). What the hint of a sidecar said stands in the row where the run
recorded it; rows without are passed over and counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ooospec_agents.bench.blame import CAUSES, Cause
from ooospec_agents.bench.data import DataError, Item, load
from ooospec_agents.bench.methods import BenchMethod, UnknownMethod, method_named
from ooospec_agents.bench.redraft import WIDTH, Recorded, Redrafter, Step, codec_of
from ooospec_agents.bench.requests import Answer
from ooospec_agents.drafting.request import Method
from ooospec_agents.formats import choose_format
from ooospec_agents.hint import Hint
from ooospec_agents.weights import WeightsError, resolve

PLAIN = ("record", "ar", "off")
"""Methods whose answers are a plain output."""


@dataclass
class Explained:
    """A request's steps by method.

    Attributes:
        method: The method's name in the run.
        item: The request.
        steps: Its steps, drafted again.
        recorded_steps: The steps that it took in the run, or None for a plain recording.
    """

    method: str
    item: Item
    steps: list[Step]
    recorded_steps: int | None = None


@dataclass
class Run:
    """A raw file, read.

    Attributes:
        options: What the run was started with.
        rows: Its rows.
        unknown: Rows whose hint is not known, by method.
    """

    options: dict[str, Any]
    rows: list[dict[str, Any]]
    unknown: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, path: Path) -> Run:
        """Read a raw file.

        Raises:
            DataError: It is none.
        """
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
            return cls(lines[0]["options"], lines[1:])
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            msg = f"{str(path)!r} is no raw file of a run ({type(error).__name__}): pass the .jsonl beside the result."
            raise DataError(msg) from None

    def items(self, data: Sequence[Path] = ()) -> list[Item]:
        """The run's requests: those that the file holds, and those of these data sets."""
        held = (row for row in self.rows if row.get("method") == "item")
        own = [Item(row["item"], row["dataset"], row["messages"], row["tools"], row["gold"]) for row in held]
        return own + [item for path in data for item in load(path)]

    def as_drafted(
        self, items: Iterable[Item], method: BenchMethod, tool_choice: str = "", *, cold: bool = True
    ) -> Iterator[Recorded]:
        """The plain outputs, to be drafted by a method.

        Args:
            items: The requests, by whose data set and id the rows are found.
            method: How they are drafted.
            tool_choice: Only requests with this one; "": all.
            cold: Whether each has stores of its own.
        """
        by_id = {(item.dataset, item.id): item for item in items}
        for (dataset, item_id, choice), answer in self._plain().items():
            item = by_id.get((dataset, item_id))
            if item is not None and tool_choice in ("", choice):
                yield self._as(method, item, answer, choice, f"{dataset}/{item_id}/{choice}" if cold else "")

    def recorded(self, items: Iterable[Item]) -> Iterator[tuple[str, Recorded, int]]:
        """Method, request and recorded steps of each drafted row, found among `items` by data set and id."""
        by_id = {(item.dataset, item.id): item for item in items}
        plain = self._plain()
        for row in self.rows:
            if "method" not in row:
                continue
            item = by_id.get((row["dataset"], row["item"]))
            report = row.get("answer", {}).get("report")
            if item is None or not report or report["method"] in ("off", "ceiling"):
                continue
            hint = self._hint_of(row, item, plain)
            if report["hint"]["arrived"] and hint is None:
                self.unknown[row["method"]] += 1
                continue
            yield row["method"], self._recorded(row, item, hint), int(report["steps"])

    @property
    def _seed(self) -> str:
        return str(self.options.get("seed", "0"))

    def _plain(self) -> dict[tuple[str, str, str], Answer]:
        """Plain outputs by data set, request and tool choice; the first of each."""
        found: dict[tuple[str, str, str], Answer] = {}
        for row in self.rows:
            if row.get("method") in PLAIN or row.get("plain"):
                choice = row.get("tool_choice") or self.options.get("tool_choice", "auto")
                found.setdefault((row["dataset"], row["item"], choice), Answer(**row["answer"]))
        return found

    def _as(self, method: BenchMethod, item: Item, plain: Answer, choice: str, scope: str) -> Recorded:
        xargs = method.xargs(item, plain, scope, self._seed)
        hint = Hint.parse(xargs["ooospec_hint"]) if "ooospec_hint" in xargs else None
        wire_format = choose_format(self.options.get("parser", "ooospec_json"), choice) or "json"
        drafting = cast(Method, method.drafting or "off")
        return Recorded(item, drafting, wire_format, choice == "required", plain.token_ids, scope, hint)

    def _recorded(self, row: dict[str, Any], item: Item, hint: Hint | None) -> Recorded:
        report = row["answer"]["report"]
        return Recorded(
            item,
            report["method"],
            report["wire_format"],
            self.options.get("tool_choice") == "required",
            row["answer"]["token_ids"],
            row.get("scope", ""),
            hint,
            report["hint"]["at_token"] or 0,
        )

    def _hint_of(self, row: dict[str, Any], item: Item, plain: dict[tuple[str, str, str], Answer]) -> Hint | None:
        if row.get("hint"):
            return Hint.model_validate(row["hint"])
        method = method_named(row["method"])
        answer = plain.get((item.dataset, item.id, self.options.get("tool_choice", "auto")))
        xargs = method.xargs(item, answer, "", self._seed)
        return Hint.parse(xargs["ooospec_hint"]) if "ooospec_hint" in xargs else None


def explain(run: Run, items: Iterable[Item], redrafter: Redrafter) -> list[Explained]:
    """Draft a run's outputs again and say of each step what it was spent on."""
    return [
        Explained(method, recorded.item, redrafter.steps(recorded), steps)
        for method, recorded, steps in run.recorded(items)
    ]


def explain_as(recorded: Iterable[Recorded], redrafter: Redrafter, name: str) -> list[Explained]:
    """Draft plain outputs by a method, and say the same of them."""
    return [Explained(name, one.item, redrafter.steps(one)) for one in recorded]


def causes_table(explained: Sequence[Explained]) -> Table:
    """Steps by cause and by who was wrong, of one method."""
    steps = [step for one in explained for step in one.steps]
    tokens = sum(step.committed for step in steps)
    recorded = [one.recorded_steps for one in explained if one.recorded_steps is not None]
    title = f"{explained[0].method}: {len(explained)} requests, {tokens} tokens in {len(steps)} steps"
    title += f" ({tokens / max(len(steps), 1):.2f} tokens a step)"
    title += f"; the run took {sum(recorded)}" if recorded else ""
    table = Table(title=title, title_justify="left")
    table.add_column("spent on")
    for name in ("steps", "share", "requests"):
        table.add_column(name, justify="right")
    table.add_column("whose guess")
    for cause in CAUSES:
        mine = [step for step in steps if step.blame.cause == cause]
        if mine:
            sources = Counter(step.blame.source or "nobody's" for step in mine)
            whose = ", ".join(f"{source} {count}" for source, count in sources.most_common())
            hit = sum(any(step.blame.cause == cause for step in one.steps) for one in explained)
            plain = cause in ("first step", "last step")
            table.add_row(cause, str(len(mine)), f"{len(mine) / len(steps):.1%}", str(hit), "" if plain else whose)
    return table


def slots_table(explained: Sequence[Explained]) -> Table:
    """The slots that cost most steps."""
    counts: Counter[tuple[str, Cause]] = Counter()
    for one in explained:
        for step in one.steps:
            if step.blame.slot:
                counts[step.blame.slot, step.blame.cause] += 1
    table = Table(title="Slots that cost most", title_justify="left")
    for name in ("slot", "spent on"):
        table.add_column(name)
    table.add_column("steps", justify="right")
    for (slot, cause), count in counts.most_common(8):
        table.add_row(slot, cause, str(count))
    return table


def show_request(one: Explained, console: Console) -> None:
    """Print a request's steps: what each added (drafted part in colour), and what was expected instead."""
    said = str(one.item.messages[-1].get("content") or "")[:160]
    head = f"{one.item.dataset} {one.item.id}, {one.method}: {len(one.steps)} steps"
    console.print(Text(head, style="bold"))
    console.print(Text(f"  asked: {said!r}", style="dim"))
    for number, step in enumerate(one.steps, start=1):
        blame = step.blame
        line = Text(f"  {number:3d}. +{step.accepted}/{step.drafted} ")
        line.append(repr(step.text)[1:-1], style="green" if step.accepted else "")
        line.append(f"  [{blame.cause}", style="yellow")
        line.append(f", {blame.slot}" if blame.slot else "", style="yellow")
        line.append(f", by {blame.source}" if blame.source else "", style="yellow")
        line.append("]", style="yellow")
        if blame.expected or blame.came:
            line.append(f" expected {blame.expected!r}, came {blame.came!r}", style="dim")
        console.print(line)


def to_json(explained: Sequence[Explained]) -> list[dict[str, Any]]:
    """Every step of every request, for programs."""
    return [
        {
            "method": one.method,
            "dataset": one.item.dataset,
            "item": one.item.id,
            "recorded_steps": one.recorded_steps,
            "steps": [
                {
                    "committed": s.committed,
                    "drafted": s.drafted,
                    "accepted": s.accepted,
                    "text": s.text,
                    **vars(s.blame),
                }
                for s in one.steps
            ],
        }
        for one in explained
    ]


def main(
    run: Annotated[Path, typer.Argument(help="Raw .jsonl of a run.")],
    data: Annotated[
        list[Path] | None, typer.Option(help="The run's requests, where the file does not hold them itself.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Methods of the run; by default all.")] = None,
    as_method: Annotated[
        str, typer.Option("--as", help="Take the plain outputs and draft them by this method (degraded:P is one).")
    ] = "",
    tool_choice: Annotated[str, typer.Option(help="With --as: only the plain outputs under this one.")] = "",
    growing: Annotated[bool, typer.Option(help="With --as: one store for all, in the run's order.")] = False,
    dataset: Annotated[str, typer.Option(help="Only this data set.")] = "",
    model: Annotated[str, typer.Option(help="Whose tokenizer; by default the run's target.")] = "",
    worst: Annotated[int, typer.Option(help="Requests shown step by step, those with the most steps first.")] = 3,
    item: Annotated[str, typer.Option(help="Show only the request with this id.")] = "",
    width: Annotated[int, typer.Option(help="Most tokens drafted a step.")] = WIDTH,
    json_out: Annotated[Path | None, typer.Option("--json", help="File for every step.")] = None,
) -> None:
    """Say what every step of a recorded run was spent on, by source, and show the worst requests."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        read = Run.read(run)
        items = [one for one in read.items(data or []) if dataset in ("", one.dataset) and item in ("", one.id)]
        codec, stops = codec_of(resolve(model or str(read.options.get("model", ""))))
        redrafter = Redrafter(codec, stops, width)
        if as_method:
            plain = read.as_drafted(items, method_named(as_method), tool_choice, cold=not growing)
            explained = explain_as(plain, redrafter, as_method)
        else:
            explained = explain(read, items, redrafter)
    except (DataError, WeightsError, UnknownMethod, FileNotFoundError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    names = [name for name in dict.fromkeys(one.method for one in explained) if not method or name in method]
    for name in names:
        mine = [one for one in explained if one.method == name]
        console.print(causes_table(mine))
        console.print(slots_table(mine))
        for one in sorted(mine, key=lambda one: -len(one.steps))[: 1 if item else worst]:
            show_request(one, console)
        console.print()
    if not names:
        console.print("No row of this run can be explained: pass its own --data, or --as METHOD for plain outputs.")
    for name, count in read.unknown.items():
        console.print(f"{count} rows of {name!r} are left out: the run did not record what their hints said.")
    if json_out is not None:
        json_out.write_text(json.dumps(to_json(explained), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
