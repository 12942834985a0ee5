"""What a worker tells of itself with its reports: counts since it last told, and what its stores hold."""

from __future__ import annotations

from collections.abc import Mapping


class Tally:
    """Turns running totals into what is new: several API processes are told, each of something else."""

    def __init__(self) -> None:
        """Nothing was told yet."""
        self._told: dict[str, int] = {}

    def news(self, totals: Mapping[str, int]) -> dict[str, int]:
        """What came to each total since it was last told; totals without news are left out."""
        return {
            name: total - self._told.get(name, 0) for name, total in totals.items() if total != self._told.get(name, 0)
        }

    def told(self, totals: Mapping[str, int]) -> None:
        """These totals have left: only what comes now is new."""
        self._told = dict(totals)
