"""Methods in pairs: every request is answered by every method, one after the other, the order rotated.

The rules of the comparison:

- Prompt KV is cached for all alike: before a request is timed, each server answers it once with one token,
  not drafting, which starts no wave and enters no history.
- Stores are cold: each timed request has a scope of its own; or they grow: one scope a method, to which each
  request is new. `Ledger` checks from scopes and reports that no answer was known before it was asked; only
  the limits (perfect, degraded, ceiling) get the recorded output.
- Every request counts, also those answered in text.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from ooospec_agents.bench.data import Item, load
from ooospec_agents.bench.methods import BenchMethod, Kind, Ledger, method_named
from ooospec_agents.bench.rawlog import RawLog
from ooospec_agents.bench.requests import LIMITS, Answer, ask, chat_body, with_xargs
from ooospec_agents.bench.servers import Server, Setup, ours, sidecar, stock
from ooospec_agents.bench.summary import save, summarize
from ooospec_agents.predictor.folder import find
from ooospec_agents.vllm_plugin.launch import LEXICAL


@dataclass(frozen=True)
class Plan:
    """What is asked and how.

    Attributes:
        methods: The methods, in their first order.
        tool_choice: "auto" or "required".
        max_tokens: Most output tokens of a request.
        stream: Whether answers are streamed.
        cached: Whether the prompt's KV is warmed; False: every request is prefilled anew.
        growing: Whether a method's stores keep what it learned from the requests before.
        seed: Of degraded hints.
    """

    methods: Sequence[BenchMethod]
    tool_choice: str = "auto"
    max_tokens: int = 256
    stream: bool = False
    cached: bool = True
    growing: bool = False
    seed: str = "0"


class PairedRun:
    """One run over running servers. Resumes what stands in the raw log."""

    def __init__(self, servers: Mapping[Kind, Server], plan: Plan, client: httpx.Client, raw: RawLog) -> None:
        self._servers = servers
        self._plan = plan
        self._client = client
        self._raw = raw
        self._ledger = Ledger(cold=not plan.growing)
        for row in raw.rows:
            if row.get("scope"):
                self._ledger.seen.add(self._ledger.key(row["scope"], row["dataset"], row["item"]))
        # A server that was started anew has forgotten all: what it learns from now on is a new scope.
        self._run_id = uuid.uuid4().hex

    def run(self, items: Sequence[Item], progress: Callable[[str], None] = lambda _: None) -> None:
        """Answer every item by every method, except those already in the raw log.

        Raises:
            Leak: A method saw an answer before it was asked.
            RequestFailed: A server went away.
        """
        for turn, item in enumerate(items):
            todo = [
                m for m in self._plan.methods if not self._raw.find(item=item.id, dataset=item.dataset, method=m.name)
            ]
            if not todo:
                continue
            plain = self._record(item) if any(m.needs_recording for m in todo) else None
            if self._plan.cached:
                self._warm(item, {m.server for m in todo})
            first = turn % len(todo)
            for method in [*todo[first:], *todo[:first]]:
                answer = self._ask_timed(method, item, plain)
                progress(
                    f"[{turn + 1}/{len(items)}] {item.id} {method.name}: {answer.wall_s:.2f} s, "
                    f"{len(answer.token_ids)} tokens in {answer.steps} steps"
                )

    def _record(self, item: Item) -> Answer:
        """The plain output that the limits are given; recorded once, on a server that no method learns on."""
        if row := self._raw.find(item=item.id, dataset=item.dataset, method="record"):
            return Answer(**row["answer"])
        kind: Kind = "stock" if "stock" in self._servers else "ours"
        body = with_xargs(self._body(kind, item), {"ooospec": "off"} if kind == "ours" else {})
        answer = ask(self._client, self._servers[kind].url, body)
        self._raw.add({"item": item.id, "dataset": item.dataset, "method": "record", "answer": answer.to_json()})
        return answer

    def _warm(self, item: Item, kinds: Iterable[Kind]) -> None:
        for kind in kinds:
            body = self._body(kind, item) | {"max_tokens": 1, "stream": False}
            ask(
                self._client,
                self._servers[kind].url,
                with_xargs(body, {"ooospec": "off"} if kind == "ours" else {}),
            )

    def _ask_timed(self, method: BenchMethod, item: Item, plain: Answer | None) -> Answer:
        scope = f"{self._run_id}-{method.name}" if self._plan.growing else uuid.uuid4().hex
        xargs = method.xargs(item, plain, scope, self._plan.seed)
        body = with_xargs(self._body(method.server, item), xargs)
        if not self._plan.cached:
            body["cache_salt"] = f"{method.name}/{item.id}"
        answer = ask(self._client, self._servers[method.server].url, body)
        self._ledger.check(method, item, xargs, answer)
        self._raw.add(
            {
                "item": item.id,
                "dataset": item.dataset,
                "method": method.name,
                "scope": xargs.get("ooospec_scope", ""),
                "answer": answer.to_json(),
            }
        )
        return answer

    def _body(self, kind: Kind, item: Item) -> dict[str, Any]:
        return chat_body(
            self._servers[kind].model,
            item,
            tool_choice=self._plan.tool_choice,
            max_tokens=self._plan.max_tokens,
            stream=self._plan.stream,
        )


SUFFIX_COLD = {"method": "suffix", "suffix_decoding_max_cached_requests": 0}
"""vLLM's suffix decoding with no memory of other requests: the prompt and the output so far."""
NGRAM = {"method": "ngram", "num_speculative_tokens": 8, "prompt_lookup_min": 2, "prompt_lookup_max": 5}

app = typer.Typer(add_completion=False)


@app.command()
def main(
    model: Annotated[str, typer.Option(help="Target model: name or folder.")],
    data: Annotated[Path, typer.Option(help="JSONL file or folder of such files.")],
    out: Annotated[Path, typer.Option(help="Result JSON; raw requests stand beside it as .jsonl.")],
    method: Annotated[list[str], typer.Option(help="Methods, in any number.")] = [  # noqa: B006
        "ar",
        "lexical",
        "ooospec",
        "perfect",
        "ceiling",
    ],
    tool_choice: str = "auto",
    limit: int | None = None,
    max_tokens: int = 256,
    stream: bool = False,
    cached: Annotated[bool, typer.Option(help="Warm each prompt's KV first, for all methods alike.")] = True,
    dtype: str = "",
    cores: Annotated[str, typer.Option(help="Cores of each target server, such as 0-1.")] = "0-1",
    sidecar_model: Annotated[
        str, typer.Option(help="Sidecar model; needed by method ooospec.")
    ] = "SmolLM2-135M-Instruct",
    sidecar_adapter: str | None = None,
    sidecar_cores: str = "",
    predictor: Annotated[
        str, typer.Option(help="The server's own predictor: lexical, span or a folder; method span needs one.")
    ] = LEXICAL,
    growing: Annotated[bool, typer.Option(help="Keep a method's stores from request to request.")] = False,
    logs: Path = Path("out/logs"),
) -> None:
    """Measure methods in pairs on one data set and write the ratios of total times."""
    methods = [method_named(name) for name in method]
    items = load(data, limit)
    setup = Setup(model, dtype=dtype, cores=cores)
    raw = RawLog(
        out.with_suffix(".jsonl"),
        {
            "model": model,
            "tool_choice": tool_choice,
            "max_tokens": max_tokens,
            "stream": stream,
            "cached": cached,
            "dtype": setup.dtype_used,
            "cores": cores,
            "growing": growing,
            "sidecar": [sidecar_model, sidecar_adapter, sidecar_cores],
            "predictor": predictor,
        },
    )
    plan = Plan(methods, tool_choice, max_tokens, stream, cached, growing)
    folder = _predictor(predictor, methods)
    kinds: set[Kind] = {m.server for m in methods}
    with ExitStack() as stack:
        servers: dict[Kind, Server] = {}
        if "stock" in kinds or "ours" not in kinds:
            servers["stock"] = stack.enter_context(stock(setup, logs))
        if "ours" in kinds:
            helper = None
            if any(m.hint == "sidecar" for m in methods):
                helper = stack.enter_context(sidecar(sidecar_model, logs, sidecar_adapter, sidecar_cores))
            replay = any(m.replay for m in methods)
            servers["ours"] = stack.enter_context(ours(setup, logs, helper, predictor=folder, allow_replay=replay))
        if "suffix" in kinds:
            servers["suffix"] = stack.enter_context(stock(setup, logs, "suffix", SUFFIX_COLD))
        if "ngram" in kinds:
            servers["ngram"] = stack.enter_context(stock(setup, logs, "ngram", NGRAM))
        client = stack.enter_context(httpx.Client(timeout=600, limits=LIMITS))
        PairedRun(servers, plan, client, raw).run(items, progress=lambda line: print(line, file=sys.stderr))
    facts = {
        "target": model,
        "tool_choice": tool_choice,
        "dtype": setup.dtype_used,
        "cached": cached,
        "cores": cores,
        "growing": growing,
        "predictor": predictor,
    }
    save(out, "paired", facts | {"rows": summarize(raw.rows)})


def _predictor(chosen: str, methods: Sequence[BenchMethod]) -> str:
    """The predictor's folder, or "lexical"."""
    hints = {method.hint for method in methods}
    if {"span", "sidecar"} <= hints:
        msg = "method 'span' would have the sidecar's hints too: measure it in a run without method 'ooospec'"
        raise typer.BadParameter(msg)
    if "span" in hints and chosen == LEXICAL:
        msg = "method 'span' needs `--predictor span` or a predictor's folder"
        raise typer.BadParameter(msg)
    return chosen if chosen == LEXICAL else str(find(None if chosen == "span" else Path(chosen)))


if __name__ == "__main__":
    app()
