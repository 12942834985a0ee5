"""Prometheus metrics of an API process, on the target's own `/metrics`.

vLLM serves prometheus_client's global registry there or, with several API servers, the files of all processes in
PROMETHEUS_MULTIPROC_DIR: plain counters and gauges appear in both, collectors of our own would only in the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge

if TYPE_CHECKING:
    from ooospec_agents.vllm_plugin.holdout import Group, Holdout

Served = Literal["drafted", "holdout", "off"]
"""How a request was served: drafted; undrafted to compare; undrafted because it, or its tool choice, wants it so."""


class Metrics:
    """Counts from the reports of requests. One for each registry: `process_metrics` gives this process's.

    Args:
        registry: Where the metrics are registered.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"ooospec_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, mode: Any, *labels: str) -> Gauge:
            return Gauge(f"ooospec_{name}", text, labels, registry=registry, multiprocess_mode=mode)

        self._requests = counter("requests", "Requests with tools, by how they were served.", "served")
        self._unreported = counter(
            "requests_unreported", "Requests that ended without a report, cancelled ones mostly."
        )
        self._received = counter("hints_received", "Hints that came, by who made them.", "source")
        self._hints = counter(
            "hints", "Requests with a hint: drafted from (used), come but not drafted from (unused), or late.", "fate"
        )
        self._dropped = counter(
            "hints_dropped", "Hints dropped in a worker: too late for their request, or for none.", "why"
        )
        self._drafted = counter("draft_tokens", "Tokens drafted, by source.", "source")
        self._accepted = counter("accepted_tokens", "Drafted tokens that the target kept, by source.", "source")
        self._tokens = counter("output_tokens", "Output tokens of drafted requests.")
        self._steps = counter("steps", "Decoding steps of drafted requests.")
        self._drafting_s = counter("drafting_seconds", "Time spent on making drafts.")
        self._decode_s = counter("decode_seconds", "Decoding time by group; prefill and queue left out.", "group")
        self._decode_n = counter("decode_tokens", "Tokens decoded in that time, by group.", "group")
        self._faults = counter(
            "faults", "Faults of ours that were swallowed, by process and place.", "process", "where"
        )
        self._lost = counter("messages_dropped", "Local messages that were dropped, by what they were.", "what")
        self._store = gauge("store_entries", "What the stores of a process hold.", "livemostrecent", "process", "store")
        self._on = gauge("drafting", "Whether requests are drafted now.", "livemin")
        self._gain = gauge("gain", "Seconds a token undrafted over drafted, from the holdout.", "livemostrecent")
        self._gain.set(math.nan)
        self._counted_faults: dict[str, int] = {}

    def hint(self, source: str) -> None:
        """A hint came from "span", "sidecar", "client" (posted) or "request" (in its body)."""
        self._received.labels(source).inc()

    def request(self, served: Served) -> None:
        """A request was announced."""
        self._requests.labels(served).inc()

    def report(self, report: Mapping[str, Any] | None, *, hinted: bool) -> None:
        """A request is over.

        Args:
            report: What became of it, or None if nothing is known.
            hinted: Whether a hint was sent to its worker from here.
        """
        if report is None:
            self._unreported.inc()
            return
        hint = report.get("hint") or {}
        if hint.get("arrived"):
            self._hints.labels("used" if hint.get("used") else "unused").inc()
        elif hinted:
            self._hints.labels("late").inc()
        if report.get("method") != "off":
            self._tokens.inc(report.get("tokens", 0))
            self._steps.inc(report.get("steps", 0))
        for source, count in report.get("drafted", {}).items():
            self._drafted.labels(source).inc(count)
        for source, count in report.get("accepted", {}).items():
            self._accepted.labels(source).inc(count)
        self._drafting_s.inc(report.get("draft_ms_total", 0.0) / 1e3)

    def decoding(self, group: Group, seconds: float, tokens: int) -> None:
        """A request of a group was decoded."""
        self._decode_s.labels(group).inc(seconds)
        self._decode_n.labels(group).inc(tokens)

    def worker(self, news: Mapping[str, Any]) -> None:
        """A worker tells of itself: `Proposer` makes it, this reads it."""
        process = f"worker-{news['rank']}"
        for name, count in news["new"].items():
            kind, _, rest = name.partition(" ")
            if kind == "hint":
                self._dropped.labels(rest).inc(count)
            elif kind == "fault":
                self._faults.labels(process, rest).inc(count)
            else:
                self._lost.labels(rest).inc(count)
        for store, size in news["sizes"].items():
            self._store.labels(process, store).set(size)

    def process(self, *, sizes: Mapping[str, int], faults: Mapping[str, int], drafting: bool, holdout: Holdout) -> None:
        """How this API process stands now."""
        for store, size in sizes.items():
            self._store.labels("api", store).set(size)
        for where, count in faults.items():
            self._faults.labels("api", where).inc(count - self._counted_faults.get(where, 0))
        self._counted_faults = dict(faults)
        self._on.set(drafting and not holdout.off)
        if (gain := holdout.gain()) is not None:
            self._gain.set(gain[0])


@cache
def process_metrics() -> Metrics:
    """This process's metrics, on the global registry, which takes each name once."""
    return Metrics()
