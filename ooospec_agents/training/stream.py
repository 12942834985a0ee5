"""The order in which a run meets its requests: references first, then traces, each time augmented anew."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ooospec_agents.training.augment import Odds, Pool, augment
from ooospec_agents.training.rows import Example, build
from ooospec_agents.training.settings import Settings
from ooospec_agents.training.traces import Call, Request

Stage = Literal["gold", "traces"]
STAGES: tuple[Stage, ...] = ("gold", "traces")


class Stream:
    """All requests of a run, in an order that depends on the seed alone.

    Args:
        requests: The requests with the data sets' references.
        traces: The target's calls by request id.
        settings: Passes, limits and the seed.
    """

    def __init__(self, requests: Sequence[Request], traces: Mapping[str, tuple[Call, ...]], settings: Settings) -> None:
        self._settings = settings
        self._pool = Pool.of(requests)
        traced = [replace(one, calls=traces[one.id], known=True) for one in requests if one.id in traces]
        # Requests without a trace first: of a run of limited time they bring what traces cannot.
        known = [one for one in requests if one.known]
        self._groups: dict[Stage, tuple[list[Request], ...]] = {
            "gold": ([one for one in known if one.id not in traces], [one for one in known if one.id in traces]),
            "traces": (traced,),
        }

    def size(self, stage: Stage) -> int:
        """Requests of a stage, all passes together."""
        settings = self._settings
        epochs = settings.gold_epochs if stage == "gold" else settings.trace_epochs
        return epochs * sum(map(len, self._groups[stage]))

    def stage(self, stage: Stage, start: int = 0) -> Iterator[tuple[int, Example]]:
        """Examples of a stage with their numbers, from number `start` on; requests without rows are passed over."""
        for number in range(start, self.size(stage)):
            rng = random.Random(f"{self._settings.seed}/{stage}/{number}")
            request = augment(self._request(stage, number), self._pool, rng, Odds())
            example = build(
                request,
                rng,
                max_values=self._settings.max_values,
                max_nulls=self._settings.max_nulls,
                habits=stage == "traces",
            )
            if example is not None:
                yield number, example

    def _request(self, stage: Stage, number: int) -> Request:
        epoch, number = divmod(number, sum(map(len, self._groups[stage])))
        for index, group in enumerate(self._groups[stage]):
            if number < len(group):
                order = list(range(len(group)))
                random.Random(f"{self._settings.seed}/{stage}/{epoch}/{index}").shuffle(order)
                return group[order[number]]
            number -= len(group)
        raise IndexError(number)
