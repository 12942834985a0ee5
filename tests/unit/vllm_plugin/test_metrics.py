"""What is counted from reports, on a registry of the test's own."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry

from ooospec_agents.vllm_plugin.accounts import Accounts
from ooospec_agents.vllm_plugin.faults import Faults
from ooospec_agents.vllm_plugin.holdout import Holdout
from ooospec_agents.vllm_plugin.metrics import Metrics
from ooospec_agents.vllm_plugin.tally import Tally

REPORT: dict[str, Any] = {
    "method": "ooospec",
    "steps": 3,
    "tokens": 20,
    "drafted": {"hint": 9, "schema": 10},
    "accepted": {"hint": 8, "schema": 9},
    "hint": {"arrived": True, "used": True},
    "draft_ms_total": 1.5,
}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> Metrics:
    return Metrics(registry)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"ooospec_{name}", labels)


def test_a_report_is_counted_by_source(registry: CollectorRegistry, metrics: Metrics) -> None:
    metrics.report(REPORT, hinted=True)
    metrics.report(REPORT, hinted=True)
    assert value(registry, "draft_tokens_total", source="schema") == 20
    assert value(registry, "accepted_tokens_total", source="hint") == 16
    assert value(registry, "output_tokens_total") == 40
    assert value(registry, "steps_total") == 6
    assert value(registry, "drafting_seconds_total") == pytest.approx(0.003)


@pytest.mark.parametrize(
    ("hint", "hinted", "fate"),
    [
        ({"arrived": True, "used": True}, True, "used"),
        ({"arrived": True, "used": False}, False, "unused"),
        ({"arrived": False, "used": False}, True, "late"),
        ({"arrived": False, "used": False}, False, None),
    ],
)
def test_the_fate_of_a_hint(
    registry: CollectorRegistry, metrics: Metrics, hint: Any, hinted: bool, fate: str | None
) -> None:
    metrics.report({**REPORT, "hint": hint}, hinted=hinted)
    found = {name: value(registry, "hints_total", fate=name) for name in ("used", "unused", "late")}
    assert {name for name, count in found.items() if count} == ({fate} if fate else set())


def test_an_undrafted_request_counts_no_tokens_of_drafted_ones(registry: CollectorRegistry, metrics: Metrics) -> None:
    metrics.report({**REPORT, "method": "off"}, hinted=False)
    assert value(registry, "output_tokens_total") == 0


def test_a_worker_tells_what_is_new(registry: CollectorRegistry, metrics: Metrics) -> None:
    news = {"rank": 1, "new": {"hint late": 2, "fault row KeyError": 1, "lost message": 3}, "sizes": {"rows": 4}}
    metrics.worker(news)
    metrics.worker({**news, "sizes": {"rows": 5}})
    assert value(registry, "hints_dropped_total", why="late") == 4
    assert value(registry, "faults_total", process="worker-1", where="row KeyError") == 2
    assert value(registry, "messages_dropped_total", what="message") == 6
    assert value(registry, "store_entries", process="worker-1", store="rows") == 5


def test_totals_become_news_once_they_were_told() -> None:
    tally = Tally()
    assert tally.news({"a": 2, "b": 0}) == {"a": 2}
    assert tally.news({"a": 3, "b": 0}) == {"a": 3}  # the first telling did not leave
    tally.told({"a": 3, "b": 0})
    assert tally.news({"a": 3, "b": 1}) == {"b": 1}


def test_faults_of_the_process_are_counted_once(registry: CollectorRegistry, metrics: Metrics) -> None:
    for count in (1, 1, 3):
        metrics.process(sizes={"catalogs": 2}, faults={"middleware": count}, drafting=True, holdout=Holdout())
    assert value(registry, "faults_total", process="api", where="middleware") == 3
    assert value(registry, "store_entries", process="api", store="catalogs") == 2
    assert value(registry, "drafting") == 1


def test_a_switched_off_holdout_shows(registry: CollectorRegistry, metrics: Metrics) -> None:
    holdout = Holdout(0.02)
    holdout.off = True
    metrics.process(sizes={}, faults={}, drafting=True, holdout=holdout)
    assert value(registry, "drafting") == 0


def test_a_count_that_fails_is_a_fault_and_no_error(metrics: Metrics) -> None:
    faults = Faults()
    accounts = Accounts(faults, metrics, Holdout(0.02))
    accounts.over({**REPORT, "tokens": "many", "timeline": [[None], [None]]}, "drafted", hinted=False)
    accounts.news({})
    assert set(faults.counts) == {"metrics", "holdout"}
