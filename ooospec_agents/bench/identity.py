"""Is the output the target's own? Token ids of stock vLLM against ours, under hints of every quality.

A difference is accepted only where the plain run was torn between the two tokens: their log-probabilities, as
the plain run had them there, lie within `NEAR`. Such places are listed, others are faults and fail the run.
"""

from __future__ import annotations

import random
import sys
import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
import typer

from ooospec_agents.bench.data import Item, load
from ooospec_agents.bench.hints import KINDS, Delivery, Kind, calls_of, delivery
from ooospec_agents.bench.rawlog import RawLog
from ooospec_agents.bench.requests import LIMITS, Answer, ask, chat_body, post_hint, with_xargs
from ooospec_agents.bench.servers import Server, Setup, ours, stock
from ooospec_agents.bench.summary import save

NEAR = 1e-4
"""Two logits closer than this are a tie, which rounding may break either way."""

Combination = tuple[Kind, str, bool]
"""Hint, tool choice, streamed or not."""
COMBINATIONS: tuple[Combination, ...] = tuple(product(KINDS, ("auto", "required"), (False, True)))


def schedule(items: Sequence[Item], cross: Literal["full", "pairs"]) -> Iterator[tuple[Item, Combination]]:
    """Which combinations each item goes through.

    "full": all. "pairs": one each, so that 28 items cover the whole cross between them, and more items repeat
    it in a new order (then every hint also meets every data set).
    """
    if cross == "full":
        yield from ((item, combination) for item in items for combination in COMBINATIONS)
        return
    for start in range(0, len(items), len(COMBINATIONS)):
        order = list(COMBINATIONS)
        random.Random(start).shuffle(order)
        yield from zip(items[start : start + len(order)], order, strict=False)


class IdentityRun:
    """Our side of a run, against the plain answers in the raw log. Resumes what stands there."""

    def __init__(self, ours: Server, client: httpx.Client, raw: RawLog, max_tokens: int) -> None:
        self._ours = ours
        self._client = client
        self._raw = raw
        self._max_tokens = max_tokens

    def check(self, item: Item, combination: Combination) -> bool:
        """Answer one item once and note whether the token ids are the plain ones; True if they are."""
        hint, tool_choice, stream = combination
        key = {
            "item": item.id,
            "dataset": item.dataset,
            "hint": hint,
            "tool_choice": tool_choice,
            "stream": stream,
        }
        if row := self._raw.find(**key):
            return bool(row["identical"])
        plain = self.plain_answer(item, tool_choice)
        body = chat_body(self._ours.model, item, tool_choice=tool_choice, max_tokens=self._max_tokens, stream=stream)
        answer = self._deliver(body, delivery(hint, calls_of(plain), item), plain)
        identical = answer.token_ids == plain.token_ids
        row = {**key, "identical": identical, "called": bool(plain.calls), "tokens": len(plain.token_ids)}
        row |= {
            "steps": answer.steps,
            "report": answer.report,
            "same_message": _message(answer, stream) == _message(plain, stream),
        }
        if not identical:
            row |= {"plain_ids": plain.token_ids, "our_ids": answer.token_ids}
            row |= self._difference(plain, answer.token_ids)
        self._raw.add(row)
        return identical

    def plain_answer(self, item: Item, tool_choice: str) -> Answer:
        """What stock vLLM answered.

        Raises:
            KeyError: It was not asked; `ask_plain` does that.
        """
        key = {"plain": True, "dataset": item.dataset, "item": item.id, "tool_choice": tool_choice}
        row = self._raw.find(**key)
        if row is None:
            raise KeyError(f"{item.dataset}/{item.id} {tool_choice}")
        return Answer(**row["answer"])

    def _deliver(self, body: dict[str, Any], sent: Delivery, plain: Answer) -> Answer:
        xargs: dict[str, Any] = {"ooospec": "ooospec", "ooospec_report": 1, "ooospec_scope": uuid.uuid4().hex}
        request_id = uuid.uuid4().hex
        if sent.tagged:
            xargs["ooospec_id"] = request_id
        if sent.with_request:
            xargs["ooospec_hint"] = sent.with_request
        body = with_xargs(body, xargs)
        posted = threading.Event()

        def post() -> None:
            if sent.posted is not None and not posted.is_set():
                posted.set()
                post_hint(self._client, self._ours.url, request_id, sent.posted)

        if body["stream"] and sent.after_tokens:
            return ask(self._client, self._ours.url, body, lambda n: post() if n >= sent.after_tokens else None)
        # Unstreamed, nothing tells how far the target is: wait as long as the plain run took to get there.
        share = sent.after_tokens / max(len(plain.token_ids), 1)
        timer = threading.Timer(plain.wall_s * share, post)
        timer.start()
        try:
            return ask(self._client, self._ours.url, body)
        finally:
            timer.cancel()
            timer.join()

    @staticmethod
    def _difference(plain: Answer, own: list[int]) -> dict[str, Any]:
        """Where the two part, and how far apart the plain run held the two tokens there."""
        ids = plain.token_ids
        at = next((i for i, (a, b) in enumerate(zip(ids, own, strict=False)) if a != b), min(len(ids), len(own)))
        found: dict[str, Any] = {"at": at, "gap": None, "accepted": False}
        if at < min(len(ids), len(own), len(plain.near)):
            two = [plain.near[at].get(f"token_id:{token}") for token in (ids[at], own[at])]
            if two[0] is not None and two[1] is not None:
                found["gap"] = abs(two[0] - two[1])
                found["accepted"] = found["gap"] <= NEAR
        return found


def ask_plain(server: Server, client: httpx.Client, raw: RawLog, item: Item, tool_choice: str, max_tokens: int) -> None:
    """Ask stock vLLM, once, and keep its answer with the log-probabilities of what it nearly wrote."""
    key = {"plain": True, "dataset": item.dataset, "item": item.id, "tool_choice": tool_choice}
    if raw.find(**key) is None:
        body = chat_body(server.model, item, tool_choice=tool_choice, max_tokens=max_tokens)
        body |= {"logprobs": True, "top_logprobs": 8, "return_tokens_as_token_ids": True}
        raw.add({**key, "answer": ask(client, server.url, body).to_json()})


def _message(answer: Answer, stream: bool) -> list[Any]:
    """What a client reads. The plain answer was not streamed: in a stream vLLM ends a call that was cut otherwise."""
    return [answer.content, answer.calls, None if stream else answer.finish]


def summarize(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts by hint, the ties and the faults."""
    rows = [row for row in rows if "hint" in row]
    by_hint = {}
    for hint in KINDS:
        mine = [row for row in rows if row["hint"] == hint]
        by_hint[hint] = {
            "n": len(mine),
            "identical": sum(row["identical"] for row in mine),
            "same_message": sum(row["same_message"] for row in mine),
            "tokens": sum(row["tokens"] for row in mine),
            "steps": sum(row["steps"] for row in mine),
            "hint_arrived": sum(bool((row["report"] or {}).get("hint", {}).get("arrived")) for row in mine),
            "hint_used": sum(bool((row["report"] or {}).get("hint", {}).get("used")) for row in mine),
        }
    differing = [row for row in rows if not row["identical"]]
    listed = [
        {k: row.get(k) for k in ("dataset", "item", "hint", "tool_choice", "stream", "at", "gap")} for row in differing
    ]
    accepted = [entry for entry, row in zip(listed, differing, strict=True) if row["accepted"]]
    faults = [entry for entry, row in zip(listed, differing, strict=True) if not row["accepted"]]
    return {
        "n": len(rows),
        "identical": sum(row["identical"] for row in rows),
        "called": sum(row["called"] for row in rows),
        "drafted_rows": sum(bool((row["report"] or {}).get("drafted")) for row in rows),
        "by_hint": by_hint,
        "ties": accepted,
        "faults": faults,
    }


app = typer.Typer(add_completion=False)


@app.command()
def main(
    model: Annotated[str, typer.Option(help="Target model: name or folder.")],
    data: Annotated[Path, typer.Option(help="JSONL file or folder of such files.")],
    out: Annotated[Path, typer.Option(help="Result JSON; raw requests stand beside it as .jsonl.")],
    limit: int = 20,
    shortest: Annotated[bool, typer.Option(help="Take the requests with the shortest prompts.")] = False,
    cross: Annotated[str, typer.Option(help="full: every combination an item; pairs: one each.")] = "full",
    dtype: Annotated[str, typer.Option(help="float32 must be identical; bfloat16 gives the rate.")] = "float32",
    max_tokens: int = 128,
    parallel: Annotated[int, typer.Option(help="Requests at once, which tries batches too.")] = 1,
    cores: str = "0-1",
    logs: Path = Path("out/logs"),
) -> None:
    """Compare token ids with stock vLLM; exit 1 on a difference in float32 that is no tie."""
    if cross not in {"full", "pairs"}:
        msg = f"{cross!r} is not a cross: use full or pairs."
        raise typer.BadParameter(msg)
    raw = RawLog(
        out.with_suffix(".jsonl"), {"model": model, "dtype": dtype, "max_tokens": max_tokens, "parallel": parallel}
    )
    work = list(schedule(load(data, limit, shortest=shortest), "full" if cross == "full" else "pairs"))
    setup = Setup(model, dtype=dtype, cores=cores)
    asked = {(item.dataset, item.id, combination[1]): item for item, combination in work}
    with httpx.Client(timeout=600, limits=LIMITS) as client, ThreadPoolExecutor(parallel) as pool:
        # One server after the other: a large model in float32 leaves no room for two.
        with stock(setup, logs) as plain:
            list(pool.map(lambda key: ask_plain(plain, client, raw, asked[key], key[2], max_tokens), asked))
        with ours(setup, logs) as own:
            run = IdentityRun(own, client, raw, max_tokens)
            for number, same in enumerate(pool.map(lambda one: run.check(*one), work), start=1):
                item, combination = work[number - 1]
                verdict = "same" if same else "DIFFERS"
                print(f"[{number}/{len(work)}] {item.id} {combination}: {verdict}", file=sys.stderr)
    result = summarize(raw.rows)
    save(
        out,
        "identity",
        {"target": model, "dtype": dtype, "cross": cross, "items": limit, "parallel": parallel, **result},
    )
    print(
        f"{result['identical']} of {result['n']} identical, {len(result['ties'])} ties, {len(result['faults'])} faults"
    )
    if result["faults"] and dtype == "float32":
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
