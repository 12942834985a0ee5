from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.hints import KINDS
from ooospec_agents.bench.identity import COMBINATIONS, Combination, IdentityRun, ask_plain, schedule, summarize
from ooospec_agents.bench.rawlog import RawLog
from ooospec_agents.bench.servers import Server

MakeItem = Callable[..., Item]


def checked(target, folder: Path, item: Item, combination: Combination) -> tuple[bool, RawLog]:
    """Put one item to stock and then, once, to ours: whether the ids were equal, and what was noted."""
    raw, client = RawLog(folder / "r.jsonl", {}), target.client()
    ask_plain(Server("http://stock", "m"), client, raw, item, combination[1], 64)
    return IdentityRun(Server("http://ours", "m"), client, raw, 64).check(item, combination), raw


def differ(token: int, at: int) -> Callable[[str, dict[str, Any], dict[str, Any]], None]:
    def change(host: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        if host == "ours":
            answer["choices"][0]["token_ids"][at] = token

    return change


def test_a_hundred_items_cover_all_pairs(make_item: MakeItem) -> None:
    got = {combination for _, combination in schedule([make_item(n) for n in range(100)], "pairs")}
    factors = (KINDS, ("auto", "required"), (False, True))
    for left, right in combinations(range(3), 2):
        assert {(c[left], c[right]) for c in got} == set(product(factors[left], factors[right]))


def test_the_full_cross_is_28_an_item(make_item: MakeItem) -> None:
    assert len(list(schedule([make_item(0), make_item(1)], "full"))) == 2 * 28


@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
def test_equal_ids_pass_under_every_combination(
    target, make_item: MakeItem, tmp_path: Path, combination: tuple[Any, str, bool]
) -> None:
    same, raw = checked(target, tmp_path, make_item(), combination)
    assert same
    assert summarize(raw.rows)["faults"] == []


def test_a_late_hint_is_posted_for_the_request_that_was_tagged(target, make_item: MakeItem, tmp_path: Path) -> None:
    checked(target, tmp_path, make_item(), ("late", "auto", True))
    (tagged,) = [b["vllm_xargs"]["ooospec_id"] for host, b in target.bodies if host == "ours"]
    assert [name for name, _ in target.hints] == [tagged]


def test_a_difference_where_the_plain_run_was_torn_is_listed_as_a_tie(
    target, make_item: MakeItem, tmp_path: Path
) -> None:
    target.change = differ(99, at=3)
    same, raw = checked(target, tmp_path, make_item(), ("right", "auto", False))
    assert not same
    result = summarize(raw.rows)
    assert result["faults"] == []
    (tie,) = result["ties"]
    assert (tie["at"], tie["gap"]) == (3, pytest.approx(5e-5))


@pytest.mark.parametrize(("token", "at"), [(98, 3), (99, 5)], ids=["token not near", "plain token not near"])
def test_any_other_difference_is_a_fault(target, make_item: MakeItem, tmp_path: Path, token: int, at: int) -> None:
    target.change = differ(token, at)
    _, raw = checked(target, tmp_path, make_item(), ("right", "auto", False))
    assert [fault["at"] for fault in summarize(raw.rows)["faults"]] == [at]


@pytest.mark.parametrize(("stream", "same"), [(True, True), (False, False)])
def test_the_finish_reason_is_compared_where_both_were_sent_whole(
    target, make_item: MakeItem, tmp_path: Path, stream: bool, same: bool
) -> None:
    def end(host: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        if host == "ours":
            answer["choices"][0]["finish_reason"] = "length"

    target.change = end
    _, raw = checked(target, tmp_path, make_item(), ("right", "auto", stream))
    assert raw.rows[-1]["same_message"] is same


def test_an_output_cut_short_is_a_fault(target, make_item: MakeItem, tmp_path: Path) -> None:
    def cut(host: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        if host == "ours":
            answer["choices"][0]["token_ids"].pop()

    target.change = cut
    _, raw = checked(target, tmp_path, make_item(), ("right", "auto", False))
    assert [fault["at"] for fault in summarize(raw.rows)["faults"]] == [7]


def test_what_was_checked_is_not_asked_again(target, make_item: MakeItem, tmp_path: Path) -> None:
    checked(target, tmp_path, make_item(), ("right", "auto", False))
    asked = len(target.bodies)
    assert checked(target, tmp_path, make_item(), ("right", "auto", False))[0]
    assert len(target.bodies) == asked
