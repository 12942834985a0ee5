"""A leak that is planted is found: the draft log of a real drafter whose store is not kept apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.ledger import Leak, Ledger, remembered
from ooospec_agents.bench.methods import method_named
from ooospec_agents.bench.paired import Helpers, PairedRun, Plan
from ooospec_agents.bench.rawlog import RawLog
from ooospec_agents.bench.requests import Answer
from ooospec_agents.bench.servers import Server
from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.drafter import Drafter
from ooospec_agents.drafting.memory import Stores
from ooospec_agents.drafting.request import RequestSpec

STOP = 0
TOOL = {
    "type": "function",
    "function": {
        "name": "book",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    },
}


class Letters:
    vocab_size = 0x110000

    def encode(self, text: str) -> list[int]:
        return [ord(char) for char in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


class DraftingTarget:
    """Answers a call whose value only the dialogue's number tells, drafted by the real drafter.

    Args:
        kept_apart: Whether stores are kept by scope, as they must be; else one store knows all.
        answered_before: Calls that are in every store at the beginning.
    """

    def __init__(self, *, kept_apart: bool, answered_before: Sequence[str] = ()) -> None:
        self.stores = Stores()
        self.kept_apart = kept_apart
        for code in answered_before:
            self._serve("lexical", "", code, [])

    def __call__(self, host: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        if body["max_tokens"] == 1:
            return
        xargs = body.get("vllm_xargs", {})
        code = f"xk{body['messages'][-1]['content'].split()[-1]}vq"
        ids, report = self._serve(xargs.get("ooospec", "off"), xargs.get("ooospec_scope", ""), code, body["messages"])
        choice = answer["choices"][0]
        choice["token_ids"] = ids
        choice["message"]["tool_calls"] = [{"function": {"name": "book", "arguments": json.dumps({"code": code})}}]
        if xargs.get("ooospec_report"):
            answer["ooospec"] = report

    def _serve(self, method: Any, scope: str, code: str, messages: list[Any]) -> tuple[list[int], dict[str, Any]]:
        text = f'<tool_call>\n{{"name": "book", "arguments": {{"code": "{code}"}}}}\n</tool_call>'
        ids = [*map(ord, text), STOP]
        spec = RequestSpec(
            "r", method=method, scope=scope if self.kept_apart else "", wire_format="hermes",
            catalog=Catalog.from_tools([TOOL]), required=True, conversation=conversation_text(messages),
        )  # fmt: skip
        drafter = Drafter(spec, Letters(), self.stores, stop_ids=[STOP])
        at = 0
        while at < len(ids):
            draft = drafter.draft(200).tokens if at else []
            kept = 0
            while kept < len(draft) and at + kept < len(ids) - 1 and draft[kept] == ids[at + kept]:
                kept += 1
            drafter.commit(ids[at : at + kept + 1])
            at += kept + 1
        drafter.finish()
        return ids, drafter.report()


def run(target: Any, drafting: DraftingTarget, items: Sequence[Item], path: Path, **options: Any) -> None:
    target.change = drafting
    plan = Plan([method_named("toolspec"), method_named("lexical")], **options)
    servers = {"ours": Server("http://ours", "m")}
    helpers = Helpers(decode=Letters().decode)
    PairedRun(servers, plan, target.client(), RawLog(path, {}), helpers).run(items)


@pytest.fixture
def items() -> Callable[[int], list[Item]]:
    return lambda first: [
        Item(f"r{n}", "set", [{"role": "user", "content": f"Number {n}"}], [TOOL]) for n in (first, first + 1)
    ]


def test_stores_that_are_kept_apart_are_no_leak(target: Any, items: Any, tmp_path: Path) -> None:
    run(target, DraftingTarget(kept_apart=True), items(0), tmp_path / "cold.jsonl")
    run(target, DraftingTarget(kept_apart=True), items(0), tmp_path / "warm.jsonl", warm=items(7))


def test_cold_stores_that_know_something_are_a_leak(target: Any, items: Any, tmp_path: Path) -> None:
    with pytest.raises(Leak, match=r"\['history'\], which must know nothing"):
        run(target, DraftingTarget(kept_apart=False), items(0), tmp_path / "r.jsonl")


def test_a_warm_store_that_knows_a_requests_own_answer_is_a_leak(target: Any, items: Any, tmp_path: Path) -> None:
    cheat = DraftingTarget(kept_apart=False, answered_before=["xk0vq"] * 9)
    with pytest.raises(Leak, match="no earlier call of its store says that"):
        run(target, cheat, items(0), tmp_path / "r.jsonl", warm=items(7))


def test_remembered_stretches_are_read_from_the_draft_log() -> None:
    answer = Answer(
        list(map(ord, 'a"bc",d')), report={"token_sources": ["target", *["history"] * 4, "schema", "history"]}
    )
    assert list(remembered(answer, Letters().decode)) == ["bc", "d"]


def test_a_store_of_vllms_own_drafter_is_asked_once_for_each_request(items: Any) -> None:
    ledger, (item, other) = Ledger(cold=False), items(0)
    ledger.check(method_named("suffix"), item, {}, Answer(), "server")
    ledger.check(method_named("suffix"), other, {}, Answer(), "server")
    with pytest.raises(Leak, match="may hold the answer"):
        ledger.check(method_named("suffix"), item, {}, Answer(), "server")
