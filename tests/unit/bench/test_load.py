"""Requests sent at once."""

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.load import LEVELS, Sending, Way, compared, figures, preemptions, run
from ooospec_agents.bench.progress import TimeLeft
from ooospec_agents.bench.rawlog import RawLog
from ooospec_agents.bench.servers import Server, Setup

COUNTED = (
    "# TYPE vllm:num_preemptions_total counter\n"
    'vllm:num_preemptions_total{engine="0",model_name="m"} 3.0\n'
    'vllm:num_preemptions_total{engine="1",model_name="m"} 4.0\n'
    'vllm:num_preemptions_created{engine="0"} 9.0\n'
)
PLAIN = Way("plain", Server("http://stock", "m"))
OURS = Way("ours", Server("http://ours", "m"), "lexical")


def rounds(target: Any, make_item: Callable[..., Item], path: Path, count: int) -> list[dict[str, Any]]:
    raw = RawLog(path, {})
    items = [make_item(number) for number in range(5)]
    run([PLAIN, OURS], items, count, Sending(target.client(), "required", 8), raw, TimeLeft(count * len(LEVELS)))
    return raw.rows


def test_each_level_sends_its_number_to_both_after_warming(
    target: Any, make_item: Callable[..., Item], tmp_path: Path
) -> None:
    rows = rounds(target, make_item, tmp_path / "r.jsonl", 1)
    assert [row["level"] for row in rows] == list(LEVELS)
    timed = [(host, body) for host, body in target.bodies if body["max_tokens"] == 8]
    assert len(timed) == 2 * sum(LEVELS)
    assert len(target.bodies) == 2 * len(timed)
    warming = [body for host, body in target.bodies if host == "ours" and body["max_tokens"] == 1]
    assert {body["vllm_xargs"]["ooospec"] for body in warming} == {"off"}


def test_no_round_learns_from_another(target: Any, make_item: Callable[..., Item], tmp_path: Path) -> None:
    rounds(target, make_item, tmp_path / "r.jsonl", 2)
    scopes = [body["vllm_xargs"]["ooospec_scope"] for host, body in target.bodies if _timed_ours(host, body)]
    assert len(set(scopes)) == 2 * len(LEVELS)


def _timed_ours(host: str, body: dict[str, Any]) -> bool:
    return host == "ours" and body["max_tokens"] == 8


def test_a_stopped_run_goes_on(target: Any, make_item: Callable[..., Item], tmp_path: Path) -> None:
    rounds(target, make_item, tmp_path / "r.jsonl", 1)
    before = len(target.bodies)
    rows = rounds(target, make_item, tmp_path / "r.jsonl", 2)
    assert len(rows) == 2 * len(LEVELS)
    assert len(target.bodies) == 2 * before


@pytest.mark.parametrize(("plain", "started"), [("stock", ["stock", "ours"]), ("off", ["ours"])])
def test_where_two_servers_do_not_fit_ours_is_compared_with_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plain: Any, started: list[str]
) -> None:
    names: list[str] = []
    for name in ("stock", "ours"):

        def start(*_: Any, name: str = name) -> Any:
            names.append(name)
            return nullcontext(Server(f"http://{name}", "m"))

        monkeypatch.setattr(f"ooospec_agents.bench.load.{name}", start)
    with ExitStack() as stack:
        first, second = compared(stack, Setup("m"), tmp_path, plain, "lexical")
    assert names == started
    assert first.server.url == f"http://{started[0]}"
    assert second == Way("ours", Server("http://ours", "m"), "lexical")
    assert first.xargs().get("ooospec") == (None if plain == "stock" else "off")


def test_preemptions_of_all_engines_are_counted(target: Any) -> None:
    target.metrics = COUNTED
    assert preemptions(target.client(), PLAIN.server) == 7


def test_figures_are_tokens_a_second_of_ours_over_stock() -> None:
    row = {
        "level": 4,
        "plain": {"seconds": 4.0, "tokens": 80, "preempted": 0},
        "ours": {"seconds": 2.0, "tokens": 80, "preempted": 1},
        "same": 3,
    }
    (entry,) = figures([row, row], "plain", "ours")
    assert (entry["at_once"], entry["rounds"], entry["value"]) == (4, 2, 2.0)
    assert (entry["plain_tokens_s"], entry["ours_tokens_s"]) == (20.0, 40.0)
    assert (entry["plain_preempted"], entry["ours_preempted"], entry["identical"]) == (0, 2, 0.75)
