"""Faults of ours that nobody else shall notice: counted, and logged the first time."""

from __future__ import annotations

import logging
from collections import Counter

from ooospec_agents.privacy import told, trace

logger = logging.getLogger("ooospec_agents.vllm_plugin")


class Faults:
    """Counts swallowed faults by where they happened.

    Attributes:
        counts: How often, by place.
    """

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self.counts: Counter[str] = Counter()

    def swallow(self, where: str, error: BaseException, *, ours: bool = False) -> None:
        """Count a fault; the first of its place is logged. `ours`: its message quotes no request, and is shown."""
        self.counts[where] += 1
        if self.counts[where] == 1:
            logger.warning(
                "ooospec: swallowed a fault in %s: %s; requests go on, further ones are only counted",
                where,
                f"{type(error).__name__}: {error}" if ours else told(error),
                exc_info=error if ours else trace(error),
            )
