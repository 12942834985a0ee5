"""How requests come and go: whether one that ends makes room for another."""

from __future__ import annotations

from collections.abc import Sequence

UNKNOWN = 0.3
"""Share of ended requests that others follow, until some have ended."""
KEPT = 0.95
"""Weight that the share keeps when the next place is taken, or is not."""


class Flow:
    """Learns which share of ended requests others follow while the batch goes on.

    In a steady flow it is nearly all of them: a request that ends earlier lets the next begin earlier. Of requests
    that came all at once it is none: the batch is over when the slowest is, whatever the others do.

    Attributes:
        share: That share, from 0 to 1.
    """

    def __init__(self) -> None:
        self.share = UNKNOWN
        self._ids: Sequence[str] = ()
        self._vacant = 0

    def step(self, ids: Sequence[str]) -> None:
        """Take note of the requests, by their ids, that a step is made for."""
        if ids == self._ids:
            return
        before, now = set(self._ids), set(ids)
        self._ids = list(ids)
        if not before & now:  # the batch was over, and another begins
            self._note(self._vacant, taken=False)
            self._vacant = 0
            return
        self._vacant += len(before - now)
        taken = min(self._vacant, len(now - before))
        late = max(self._vacant - taken - len(now), 0)  # more than half have gone, and none came
        self._note(taken, taken=True)
        self._note(late, taken=False)
        self._vacant -= taken + late

    def _note(self, places: int, *, taken: bool) -> None:
        kept = KEPT**places
        self.share = self.share * kept + taken * (1 - kept)
