from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.ledger import Leak
from ooospec_agents.bench.methods import UnknownMethod, method_named, with_hints
from ooospec_agents.bench.paired import Helpers, PairedRun, Plan
from ooospec_agents.bench.rawlog import OtherRun, RawLog
from ooospec_agents.bench.requests import Answer
from ooospec_agents.bench.servers import Server
from ooospec_agents.bench.waves import RecordedWave

MakeItem = Callable[..., Item]
SERVERS: dict[Any, Server] = {kind: Server(f"http://{kind}", "m") for kind in ("stock", "ours", "suffix")}


def paired(target, path: Path, *methods: str, waves: Any = None, **options: Any) -> PairedRun:
    plan = Plan([method_named(name) for name in methods], **options)
    return PairedRun(SERVERS, plan, target.client(), RawLog(path, {"run": 1}), Helpers(waves=waves or {}))


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


def test_a_plain_answer_that_was_timed_already_is_not_asked_for_again(
    target, make_item: MakeItem, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    paired(target, path, "ar").run([make_item(4)])
    target.bodies.clear()
    paired(target, path, "ceiling").run([make_item(4)])
    assert [host for host, body in target.bodies if body["max_tokens"] > 1] == ["ours"]
    assert target.bodies[-1][1]["vllm_xargs"]["ooospec_replay"] == [4, 1, 2, 3, 4, 5, 6, 7]


def test_limits_are_asked_after_the_plain_answer_that_they_are_given(
    target, make_item: MakeItem, tmp_path: Path
) -> None:
    paired(target, tmp_path / "r.jsonl", "ceiling", "lexical", "ar").run([make_item(4), make_item(5)])
    assert timed(target) == [
        ("ours", "lexical"), ("stock", ""), ("ours", "ceiling"),
        ("ours", "lexical"), ("stock", ""), ("ours", "ceiling"),
    ]  # fmt: skip
    replayed = [body["vllm_xargs"].get("ooospec_replay", [])[:1] for _, body in target.bodies if "vllm_xargs" in body]
    assert [ids for ids in replayed if ids] == [[4], [5]]


def test_our_server_prepares_for_the_tools_where_hints_are_made_there(
    target, make_item: MakeItem, tmp_path: Path
) -> None:
    paired(target, tmp_path / "a.jsonl", "lexical").run([make_item(0)])
    assert target.prepared == []
    paired(target, tmp_path / "b.jsonl", "span").run([make_item(0)])
    assert target.prepared == [make_item(0).tools]


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


def test_warm_stores_are_one_a_method_and_filled_from_one_list(target, make_item: MakeItem, tmp_path: Path) -> None:
    warm = [make_item(7), make_item(8)]
    paired(target, tmp_path / "r.jsonl", "toolspec", "lexical", warm=warm).run([make_item(0), make_item(1)])
    asked: dict[str, list[str]] = {}
    for _, body in target.bodies:
        if body["max_tokens"] > 1:
            scope = body["vllm_xargs"]["ooospec_scope"]
            asked.setdefault(scope, []).append(body["messages"][0]["content"])
    assert list(asked.values()) == [["Oslo 7", "Oslo 8", "Oslo 0", "Oslo 1"]] * 2


def test_a_request_that_fills_a_store_starts_no_wave(target, make_item: MakeItem, tmp_path: Path) -> None:
    paired(target, tmp_path / "r.jsonl", "ooospec", warm=[make_item(7)]).run([make_item(0)])
    fills = [b for _, b in target.bodies if b["messages"][0]["content"] == "Oslo 7"]
    # Tagged: the server waits for the client's hint, which never comes.
    assert [("ooospec_id" in b["vllm_xargs"], "ooospec_hint" in b["vllm_xargs"]) for b in fills] == [(True, False)]
    timed_one = [b for _, b in target.bodies if b["vllm_xargs"].get("ooospec_report")]
    assert ["ooospec_id" in b["vllm_xargs"] for b in timed_one] == [False]


def test_a_resumed_warm_run_fills_with_what_was_asked_before(target, make_item: MakeItem, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    paired(target, path, "lexical", warm=[make_item(7)]).run([make_item(0)])
    target.bodies.clear()
    paired(target, path, "lexical", warm=[make_item(7)]).run([make_item(0), make_item(1)])
    asked = [b["messages"][0]["content"] for _, b in target.bodies if b["max_tokens"] > 1]
    assert asked == ["Oslo 7", "Oslo 0", "Oslo 1"]


def test_own_setting_posts_the_recorded_hint_while_the_request_runs(
    target, make_item: MakeItem, tmp_path: Path
) -> None:
    hint = '{"calls":[{"name":"get_weather"}]}'
    waves = {("set", "r0"): RecordedWave(hint, 0.0)}

    def wait_for_the_hint(host: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        deadline = time.monotonic() + 5
        while body["max_tokens"] > 1 and not target.hints and time.monotonic() < deadline:
            time.sleep(0.001)

    target.change = wait_for_the_hint
    path = tmp_path / "r.jsonl"
    paired(target, path, "ooospec", setting="own", waves=waves).run([make_item(0)])
    ((request_id, payload),) = target.hints
    sent = [b["vllm_xargs"]["ooospec_id"] for _, b in target.bodies if b["max_tokens"] > 1]
    assert (sent, json.loads(payload)) == ([request_id], json.loads(hint))
    row = json.loads(path.read_text().splitlines()[-1])
    assert (row["hint"], row["hint_bytes"], row["wave_ms"]) == (json.loads(hint), len(hint), 0.0)


@pytest.mark.parametrize("source", ["history", "hint", "replay"])
def test_a_planted_leak_is_reported(target, make_item: MakeItem, tmp_path: Path, source: str) -> None:
    def leak(host: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        if "ooospec" in answer:
            answer["ooospec"]["drafted"] = {source: 3}

    target.change = leak
    with pytest.raises(Leak, match=source):
        paired(target, tmp_path / "r.jsonl", "lexical").run([make_item()])


@pytest.mark.parametrize("method", ["lexical", "suffix"])
def test_a_warm_list_that_holds_a_measured_request_is_a_leak(
    target, make_item: MakeItem, tmp_path: Path, method: str
) -> None:
    with pytest.raises(Leak, match="may hold the answer"):
        paired(target, tmp_path / "r.jsonl", method, warm=[make_item(0)]).run([make_item(0)])
    paired(target, tmp_path / "other.jsonl", method, warm=[make_item(1)]).run([make_item(0)])


def test_an_answer_sent_along_is_a_leak(target, make_item: MakeItem, tmp_path: Path) -> None:
    run = paired(target, tmp_path / "r.jsonl", "perfect")
    cheat = replace(method_named("perfect"), hint="sidecar")
    run._ledger.check(method_named("perfect"), make_item(), {"ooospec_scope": "a", "ooospec_hint": "{}"}, Answer(), "a")
    with pytest.raises(Leak, match="sent along"):
        run._ledger.check(cheat, make_item(), {"ooospec_scope": "b", "ooospec_hint": "{}"}, Answer(), "b")


def test_unknown_methods_are_named() -> None:
    assert method_named("degraded:0.64").right == 0.64
    for name in ("fast", "degraded:2", "degraded:x"):
        with pytest.raises(UnknownMethod, match=name):
            method_named(name)


def test_hints_take_the_place_of_the_sidecars() -> None:
    assert with_hints(["ar", "ooospec"], []) == ["ar", "ooospec"]
    assert with_hints(["ar", "ooospec", "perfect"], ["sidecar", "degraded:0.64"]) == [
        "ar", "ooospec", "degraded:0.64", "perfect",
    ]  # fmt: skip
    assert [(method_named(name).row_name, method_named(name).hints) for name in ("gold", "degraded:0.5", "perfect", "ar")] == [
        ("ooospec", "gold"), ("ooospec", "degraded:0.5"), ("perfect", "perfect"), ("ar", ""),
    ]  # fmt: skip
