"""What a client knows of its target: whether the plugin is there, and whether it drafts."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ooospec_agents.http_library import httpx

log = logging.getLogger(__name__)

STATUS_TIMEOUT_S = 5.0
"""Longest wait for the target's status, in seconds."""
KNOWN_S = 300.0
"""How long a target that has the plugin is believed to have it, in seconds."""
ABSENT_S = 60.0
"""How long a target without the plugin is left alone, in seconds."""
DOWN_S = 5.0
"""How long a target that did not answer is left alone, in seconds."""

_NO_PLUGIN = (
    "Target without the plugin: %r answered %d. Its requests go out unchanged: "
    "start it with `ooospec serve target`, or drop `sidecar`."
)


@dataclass(frozen=True)
class TargetStatus:
    """What is known of a target, and until when (monotonic seconds). The default is nothing."""

    plugin: bool = False
    drafting: bool = False
    until: float = 0.0

    @property
    def fresh(self) -> bool:
        """Whether it need not be asked for again yet."""
        return self.until > time.monotonic()


@dataclass
class Faults:
    """Counts what went wrong, by kind, and says each kind once."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, message: str, *values: Any) -> None:
        """Count a fault; the first of its kind is logged as a warning."""
        self.counts[kind] += 1
        if self.counts[kind] == 1:
            log.warning(message, *values)


class StatusBoard:
    """The status of one target, asked for by one question at a time.

    Args:
        base_url: The target's base URL, without a slash at its end.
        faults: Where faults are counted.
        plugin_expected: Say so where the plugin is missing.
    """

    def __init__(self, base_url: str, faults: Faults, *, plugin_expected: bool) -> None:
        self.now = TargetStatus()
        self._base = base_url
        self._faults = faults
        self._plugin_expected = plugin_expected
        self._answered = threading.Event()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the first answer; whether the target has the plugin."""
        self._answered.wait(timeout_s)
        return self.now.plugin

    async def ask(self, http: httpx.AsyncClient, alone: asyncio.Lock, headers: Mapping[str, str]) -> None:
        """Ask the target, unless that was done lately."""
        async with alone:
            if not self.now.fresh:
                self.now = await self._ask(http, headers)
        self._answered.set()

    async def _ask(self, http: httpx.AsyncClient, headers: Mapping[str, str]) -> TargetStatus:
        now = time.monotonic()
        url = f"{self._base}/ooospec/status"
        try:
            response = await http.get(url, headers=dict(headers), timeout=STATUS_TIMEOUT_S)
            status = response.json() if response.status_code == 200 else None
        except Exception as problem:
            # A target that is down tells the user so itself, by the user's own request.
            log.debug("No status from %r: %r", url, problem)
            return TargetStatus(until=now + DOWN_S)
        if response.status_code in (401, 403):
            # The key may not be known before the first request; that request brings it.
            return TargetStatus(until=now + DOWN_S)
        if not isinstance(status, dict) or not isinstance(status.get("drafting"), bool):
            if self._plugin_expected:
                self._faults.add("plugin", _NO_PLUGIN, url, response.status_code)
            return TargetStatus(until=now + ABSENT_S)
        if not status["drafting"]:
            self._faults.add("drafting", "Target at %r does not draft: %s", self._base, status.get("reason"))
        return TargetStatus(plugin=True, drafting=status["drafting"], until=now + KNOWN_S)
