"""Everything that is kept longer than a request, with its size and age: `python -m ooospec_agents.bounds` writes
`docs/bounds.md` from it, and a test fills each store.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).parent.parent

HEAD = """# Bounds

Written by `python -m ooospec_agents.bounds`; a test checks that it is up to date, and others fill every store beyond
its size. Where no age is given, what was used longest ago goes first. "Key" says what is kept apart.
"""


@dataclass(frozen=True)
class Bound:
    """A store.

    Attributes:
        name: Its name, as `ooospec_store_entries` shows it where it does.
        keeps: What is kept.
        where: File and constant of its size, or file and value where it is no constant.
        key: What is kept apart.
        age: File and constant of the age in seconds, or "".
    """

    name: str
    keeps: str
    where: tuple[str, str | int]
    key: str = ""
    age: tuple[str, str] | None = None


_A, _C, _W, _F = (
    f"ooospec_agents/vllm_plugin/{name}.py" for name in ("accelerator", "channel", "waiting", "foresight")
)
_M = "ooospec_agents/drafting/memory.py"

API = (
    Bound("catalogs", "tools that were read", (_A, "MAX_CATALOGS"), "content"),
    Bound("guessing", "requests guessed for at once; others are guessed for later", (_A, "MAX_GUESSING")),
    Bound("reports", "reports nobody has asked for yet", (_C, "MAX_REPORTS"), "request"),
    Bound(
        "sent_catalogs",
        "catalogs that a worker was sent",
        ("ooospec_agents/vllm_plugin/messages.py", "SENDER_CATALOGS"),
    ),
    Bound(
        "queue",
        "messages between two processes; what does not fit is dropped",
        ("ooospec_agents/vllm_plugin/sockets.py", "MAX_QUEUED"),
        "",
        (_C, "MAX_AGE_S"),
    ),
    Bound(
        "holdout",
        "requests of a group that are compared",
        ("ooospec_agents/vllm_plugin/holdout.py", "MAX_REQUESTS"),
        "group",
        ("ooospec_agents/vllm_plugin/holdout.py", "WINDOW_S"),
    ),
    Bound(
        "warmed", "catalogs that the sidecar has read", ("ooospec_agents/sidecar/worker.py", "MAX_PREPARED"), "catalog"
    ),
    Bound(
        "waves",
        "waves at once; a request beyond them gets no hint",
        ("ooospec_agents/sidecar/worker.py", 8),
        "",
        ("ooospec_agents/bounds.py", "WAVE_S"),
    ),
    Bound(
        "predicting", "requests that wait for the span predictor", ("ooospec_agents/predictor/worker.py", "MAX_WAITING")
    ),
    Bound(
        "encoded",
        "catalogs that the span predictor has read",
        ("ooospec_agents/predictor/predictor.py", "MAX_CATALOGS"),
        "catalog",
    ),
)
WORKER = (
    Bound("worker_catalogs", "catalogs that were received", ("ooospec_agents/vllm_plugin/messages.py", 512), "content"),
    Bound("waiting", "announced requests that have not begun", (_W, "MAX_REQUESTS"), "request", (_W, "MAX_WAIT_S")),
    Bound(
        "early_hints", "hints that came before their request", (_W, "MAX_EARLY_HINTS"), "request", (_W, "EARLY_HINT_S")
    ),
    Bound(
        "ahead",
        "drafters made while the prompt is read; no more are made then",
        (_F, "MAX_AHEAD"),
        "request",
        (_F, "MAX_AHEAD_S"),
    ),
    Bound("begun", "requests that have begun, so that none is thought about then", (_F, "MAX_BEGUN"), "request"),
    Bound("finished", "ids of finished requests, so that late hints are dropped", (_W, "MAX_FINISHED"), "request"),
    Bound("reply_addresses", "API processes to report to", (_C, "MAX_REPLY_ADDRESSES")),
    Bound("drained", "messages read at once; the others wait", (_C, "MAX_DRAINED")),
    Bound("mail", "messages read that the engine has not taken", (_F, "MAX_MAIL"), "", (_C, "MAX_AGE_S")),
    Bound(
        "memories",
        "what earlier calls taught: history, dialect, trust",
        (_M, 256),
        "tenant, scope, method, LoRA, format",
    ),
    Bound("functions", "functions with a history, in one memory", (_M, "MAX_FUNCTIONS"), "function"),
    Bound("history", "earlier calls of one function", (_M, "MAX_CALLS_PER_FUNCTION")),
    Bound("values", "characters of a value that is kept", (_M, "MAX_VALUE_CHARS")),
    Bound("names", "names called of late, in one memory", (_M, 64)),
    Bound("openings", "texts before a call, in one memory; as many endings", (_M, "MAX_OPENINGS")),
    Bound("texts", "texts outside calls, in one memory, each cut after 400 characters", (_M, "MAX_TEXTS")),
    Bound("trust", "records of how often a source was right, in one memory", (_M, "MAX_TRUSTED"), "source, kind"),
    Bound(
        "words",
        "catalogs whose words were read, in each process",
        ("ooospec_agents/drafting/sources/functions.py", "MAX_CATALOGS"),
        "catalog",
    ),
)
CLIENT = (
    Bound(
        "targets",
        "targets that a client process knows",
        ("ooospec_agents/targets.py", "MAX_TARGETS"),
        "address, sidecar, key",
    ),
    Bound("prepared", "catalogs that a target was told of", ("ooospec_agents/client.py", "MAX_PREPARED"), "catalog"),
    Bound("pending", "hints on their way to a target", ("ooospec_agents/client.py", "MAX_PENDING")),
    Bound(
        "models",
        "models that an agent middleware accelerates",
        ("integrations/langchain_ooospec/middleware.py", "MAX_MODELS"),
    ),
)
INPUT = (
    Bound(
        "body",
        "bytes of a request that is read; a larger one passes untouched",
        ("ooospec_agents/vllm_plugin/middleware.py", "MAX_BODY_BYTES"),
    ),
    Bound(
        "tools",
        "bytes of the tools of `prepare`; more are refused",
        ("ooospec_agents/vllm_plugin/routes.py", "MAX_TOOLS_BYTES"),
    ),
    Bound("hint", "bytes of a hint; more are refused", ("ooospec_agents/hint.py", "MAX_HINT_BYTES")),
    Bound(
        "message",
        "bytes between two processes; larger ones are not sent",
        ("ooospec_agents/vllm_plugin/messages.py", "MAX_MESSAGE_BYTES"),
    ),
    Bound("catalog", "functions of a request; others are not drafted", ("ooospec_agents/catalog.py", "MAX_FUNCTIONS")),
    Bound("slots", "slots of a function; others are not drafted", ("ooospec_agents/catalog.py", "MAX_SLOTS")),
    Bound(
        "conversation",
        "characters of a conversation that are copied from",
        ("ooospec_agents/drafting/request.py", "MAX_CONVERSATION_CHARS"),
    ),
    Bound("calls", "calls of an output that are read", ("ooospec_agents/drafting/cursor.py", "MAX_CALLS_READ")),
    Bound("timeline", "steps that a report lists", ("ooospec_agents/drafting/drafter.py", "MAX_TIMELINE")),
)

WAVE_S = 10.0
"""Seconds that a wave may take; the default of the sidecar's worker."""

STORES = (*API, *WORKER, *CLIENT)


def size(bound: Bound) -> int:
    """The size of a store, as its file says it."""
    file, constant = bound.where
    return constant if isinstance(constant, int) else int(_constant(file, constant))


def age(bound: Bound) -> float | None:
    """The age from which what is kept is dropped, in seconds, or None."""
    return _constant(*bound.age) if bound.age is not None else None


def render() -> str:
    """The page."""
    parts = [HEAD]
    titles = {
        "In an API process": API,
        "In a worker process": WORKER,
        "In a client's process": CLIENT,
        "Of one request": INPUT,
    }
    for title, bounds in titles.items():
        parts.append(f"## {title}\n\n{_table(bounds)}")
    return "\n".join(parts)


def _table(bounds: Sequence[Bound]) -> str:
    lines = ["| | keeps | size | age | key | in |", "|---|---|---|---|---|---|"]
    for bound in bounds:
        seconds = age(bound)
        shown = "" if seconds is None else f"{seconds:g} s"
        lines.append(f"| {bound.name} | {bound.keeps} | {size(bound):,} | {shown} | {bound.key} | `{bound.where[0]}` |")
    return "\n".join(lines) + "\n"


def _constant(file: str, name: str) -> float:
    """A number assigned at the top of a file, without importing it: some need torch."""
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            return _number(node.value)
    msg = f"{file} has no constant {name}"
    raise LookupError(msg)


def _number(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _number(node.left) * _number(node.right)
    value = ast.literal_eval(node)
    if not isinstance(value, int | float):
        msg = f"{value!r} is no number"
        raise TypeError(msg)
    return value


def main(page: Annotated[Path, typer.Option(help="Page to write.")] = Path("docs/bounds.md")) -> None:
    """Write the page."""
    page.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
