"""Rows: a request and its right answer become questions with answers, in the words of the sidecar's prompts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ooospec_agents.catalog import Catalog, Function
from ooospec_agents.sidecar import prompts
from ooospec_agents.training.traces import Request

Kind = Literal["function", "value", "null"]

WEIGHTS: Mapping[Kind, float] = {"function": 2.0, "value": 1.0, "null": 0.25}
"""Weight in the loss: nearly four of five slots are null, and a wrong function spoils the whole call."""
END = "\n"
"""What ends an answer: the server stops there."""
MAX_ANSWER_CHARS = 160
"""Longer answers are not trained on: a wave asks for fewer tokens than that."""


@dataclass(frozen=True)
class Row:
    """One question and its answer, `END` included; `weight` counts in the loss."""

    question: str
    answer: str
    kind: Kind

    @property
    def weight(self) -> float:
        """The row's weight in the loss."""
        return WEIGHTS[self.kind]


@dataclass(frozen=True)
class Example:
    """One request's rows: `shared` stands before each of their questions."""

    id: str
    shared: str
    rows: tuple[Row, ...]


def build(
    request: Request, rng: random.Random, *, max_values: int = 8, max_nulls: int = 2, habits: bool = True
) -> Example | None:
    """The rows of one request.

    The function row is left out where it would ask for nothing: one function bound, and that one called. Of
    several calls the first counts, since the target writes that one first.

    Args:
        request: The request with its right answer.
        rng: Draws which null slots are kept, and the rows' order.
        max_values: Slots of the called function that have a value, at most.
        max_nulls: Slots answered by null, of whichever function, at most.
        habits: Whether the answer is the target's own. A data set's reference leaves optional slots out that a
            target fills, so without it the called function's empty slots are not asked for.

    Returns:
        The example; None where there is no row, or the called function is not bound.
    """
    catalog = Catalog.from_tools(list(request.tools))
    if not request.known or not catalog.functions:
        return None
    call = request.calls[0] if request.calls else None
    called = catalog.function(call.name) if call else None
    if call is not None and called is None:
        return None
    rows: list[Row] = []
    if len(catalog.functions) > 1 or called is None:
        answer = prompts.function_answer(catalog, called.name if called else None)
        rows.append(Row(prompts.function_question(catalog), answer + END, "function"))
    values, nulls = _slot_rows(catalog, called, call.arguments if call else {}, habits)
    rows += rng.sample(values, min(max_values, len(values)))
    rows += rng.sample(nulls, min(max_nulls, len(nulls)))
    if not rows:
        return None
    rng.shuffle(rows)
    shared = prompts.prefix(catalog) + prompts.conversation(request.messages)
    return Example(request.id, shared, tuple(rows))


def _slot_rows(
    catalog: Catalog, called: Function | None, arguments: Mapping[str, Any], habits: bool
) -> tuple[list[Row], list[Row]]:
    """Rows of slots that have a value, and rows of slots that are null."""
    values, nulls = [], []
    for function in catalog.functions:
        for slot in function.slots:
            question = prompts.slot_question(function, slot)
            if function is called and slot.name in arguments:
                answer = prompts.render_answer(arguments[slot.name], slot)
                if len(answer) <= MAX_ANSWER_CHARS:
                    values.append(Row(question, answer + END, "value"))
            elif habits or function is not called:
                nulls.append(Row(question, prompts.render_answer(None, slot) + END, "null"))
    return values, nulls


def without_call(request: Request) -> Request | None:
    """The same request with every called function taken away, so that nothing is to be called.

    None where no tool would remain.
    """
    names = {call.name for call in request.calls}
    tools = tuple(tool for tool in request.tools if tool_name(tool) not in names)
    if not tools or len(tools) == len(request.tools):
        return None
    return replace(request, id=f"{request.id}/none", tools=tools, calls=())


def tool_name(tool: Mapping[str, Any]) -> str:
    """A tool's function name, or "" for what is none."""
    function = tool.get("function", tool)
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""
