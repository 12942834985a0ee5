from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.methods import Leak, UnknownMethod, method_named
from ooospec_agents.bench.paired import PairedRun, Plan
from ooospec_agents.bench.rawlog import OtherRun, RawLog
from ooospec_agents.bench.servers import Server

MakeItem = Callable[..., Item]
SERVERS: dict[Any, Server] = {"stock": Server("http://stock", "m"), "ours": Server("http://ours", "m")}


def paired(target, path: Path, *methods: str, **options: Any) -> PairedRun:
    plan = Plan([method_named(name) for name in methods], **options)
    return PairedRun(SERVERS, plan, target.client(), RawLog(path, {"run": 1}))


def timed(target) -> list[tuple[str, str]]:
    """Server and method of each request that was no warm-up, in order."""
    return [
        (host, body.get("vllm_xargs", {}).get("ooospec", "")) for host, body in target.bodies if body["max_tokens"] > 1
    ]


def test_every_method_answers_every_item_in_rotated_order(target, make_item: MakeItem, tmp_path: Path) -> None:
    paired(target, tmp_path / "r.jsonl", "ar", "off", "lexical").run([make_item(0), make_item(1)])
    assert timed(target) == [
        ("stock", ""), ("ours", "off"), ("ours", "lexical"),
        ("ours", "off"), ("ours", "lexical"), ("stock", ""),
    ]  # fmt: skip


def test_warm_ups_are_one_token_and_not_drafted(target, make_item: MakeItem, tmp_path: Path) -> None:
    paired(target, tmp_path / "r.jsonl", "ar", "lexical").run([make_item()])
    warm = {host: body for host, body in target.bodies if body["max_tokens"] == 1}
    assert warm["ours"]["vllm_xargs"] == {"ooospec": "off"}
    assert "vllm_xargs" not in warm["stock"]


def test_uncached_prompts_are_not_warmed_and_salted_apart(target, make_item: MakeItem, tmp_path: Path) -> None:
    paired(target, tmp_path / "r.jsonl", "off", "lexical", cached=False).run([make_item()])
    assert [body["cache_salt"] for _, body in target.bodies] == ["off/r0", "lexical/r0"]


def test_limits_get_the_recorded_plain_output(target, make_item: MakeItem, tmp_path: Path) -> None:
    paired(target, tmp_path / "r.jsonl", "ceiling", "perfect", "perfect-values").run([make_item(4)])
    sent = [body["vllm_xargs"] for host, body in target.bodies if host == "ours" and body["max_tokens"] > 1]
    assert sent[0]["ooospec_replay"] == [4, 1, 2, 3, 4, 5, 6, 7]
    whole, values = (json.loads(body["ooospec_hint"]) for body in sent[1:])
    assert whole["calls"] == values["calls"]
    assert values["calls"][0]["name"] == "get_weather"
    assert (whole["output"], "output" in values) == ("4 1 2 3 4 5 6", False)


def test_a_stopped_run_goes_on_where_it_stopped(target, make_item: MakeItem, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    paired(target, path, "ar", "off").run([make_item(0)])
    path.write_text(path.read_text() + '{"half a li')
    target.bodies.clear()
    paired(target, path, "ar", "off").run([make_item(0), make_item(1)])
    assert {body["messages"][0]["content"] for _, body in target.bodies} == {"Oslo 1"}


def test_a_raw_file_of_other_options_is_not_mixed_in(tmp_path: Path) -> None:
    RawLog(tmp_path / "r.jsonl", {"run": 1})
    with pytest.raises(OtherRun, match="other options"):
        RawLog(tmp_path / "r.jsonl", {"run": 2})


def test_each_timed_request_has_stores_of_its_own(target, make_item: MakeItem, tmp_path: Path) -> None:
    paired(target, tmp_path / "r.jsonl", "toolspec", "lexical").run([make_item(0), make_item(1)])
    scopes = [body["vllm_xargs"]["ooospec_scope"] for _, body in target.bodies if body["max_tokens"] > 1]
    assert len(set(scopes)) == 4


def test_growing_stores_are_one_a_method(target, make_item: MakeItem, tmp_path: Path) -> None:
    paired(target, tmp_path / "r.jsonl", "toolspec", "lexical", growing=True).run([make_item(0), make_item(1)])
    scopes = [body["vllm_xargs"]["ooospec_scope"] for _, body in target.bodies if body["max_tokens"] > 1]
    assert len(set(scopes)) == 2


@pytest.mark.parametrize("source", ["history", "hint", "replay"])
def test_a_planted_leak_is_reported(target, make_item: MakeItem, tmp_path: Path, source: str) -> None:
    def leak(host: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        if "ooospec" in answer:
            answer["ooospec"]["drafted"] = {source: 3}

    target.change = leak
    with pytest.raises(Leak, match=source):
        paired(target, tmp_path / "r.jsonl", "lexical").run([make_item()])


def test_an_item_asked_twice_of_growing_stores_is_a_leak(target, make_item: MakeItem, tmp_path: Path) -> None:
    run = paired(target, tmp_path / "r.jsonl", "lexical", growing=True)
    with pytest.raises(Leak, match="used before"):
        run._ask_timed(method_named("lexical"), make_item(), None) and run._ask_timed(
            method_named("lexical"), make_item(), None
        )


def test_unknown_methods_are_named() -> None:
    assert method_named("degraded:0.64").right == 0.64
    for name in ("fast", "degraded:2", "degraded:x"):
        with pytest.raises(UnknownMethod, match=name):
            method_named(name)
