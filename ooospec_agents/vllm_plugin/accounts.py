"""What an API process counts of its requests. Never raises: a count that fails is a fault like any other of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ooospec_agents.vllm_plugin.faults import Faults
from ooospec_agents.vllm_plugin.holdout import Group, Holdout, decoding

if TYPE_CHECKING:
    from ooospec_agents.vllm_plugin.metrics import Metrics, Served


class Accounts:
    """The metrics and the holdout of a process.

    Args:
        faults: Where faults are swallowed.
        metrics: Where requests are counted, or None.
        holdout: Compares drafted requests with undrafted ones.
    """

    def __init__(self, faults: Faults, metrics: Metrics | None = None, holdout: Holdout | None = None) -> None:
        self.counting = metrics is not None
        self.holdout = Holdout() if holdout is None else holdout
        self._faults = faults
        self._metrics = metrics

    def news(self, news: Mapping[str, Any]) -> None:
        """A worker tells of itself."""
        self._count(lambda metrics: metrics.worker(news))

    def hint(self, source: str) -> None:
        """A hint came."""
        self._count(lambda metrics: metrics.hint(source))

    def opened(self, method: str, group: Group | None) -> None:
        """A request was announced."""
        served: Served = "drafted" if method != "off" else "holdout" if group == "holdout" else "off"
        self._count(lambda metrics: metrics.request(served))

    def over(self, report: dict[str, Any] | None, group: Group | None, *, hinted: bool) -> None:
        """A request is over: count it, and compare it with those of the other group."""
        self._count(lambda metrics: metrics.report(report, hinted=hinted))
        if group is None or report is None:
            return
        try:
            self.holdout.record(group, report)
        except Exception as error:
            self._faults.swallow("holdout", error)
        self._count(lambda metrics: metrics.decoding(group, *decoding(report)))

    def show(self, sizes: Callable[[], Mapping[str, int]], *, drafting: bool) -> None:
        """How the process stands now."""
        holdout, faults = self.holdout, self._faults.counts
        self._count(lambda metrics: metrics.process(sizes=sizes(), faults=faults, drafting=drafting, holdout=holdout))

    def _count(self, count: Callable[[Metrics], None]) -> None:
        if self._metrics is None:
            return
        try:
            count(self._metrics)
        except Exception as error:
            self._faults.swallow("metrics", error)
