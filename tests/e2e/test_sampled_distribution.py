"""Sampled calls come from the target's own distribution, also beside greedy requests; without the repair they do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ooospec_agents.bench.requests import RequestFailed
from ooospec_agents.bench.sampling import (
    Sample,
    common,
    draw,
    greedy_unchanged,
    hinted_xargs,
    outcomes,
    p_value,
    parting,
)
from ooospec_agents.bench.servers import Setup, ours, stock

pytestmark = pytest.mark.e2e

SETUP = Setup("SmolLM2-135M-Instruct", dtype="float32", max_model_len=2048)
DRAWS = 240


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=300) as client:
        yield client


@pytest.fixture(scope="module")
def plain(client: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    with stock(SETUP, tmp_path_factory.mktemp("logs")) as server:
        return draw(client, server, DRAWS, {})


@pytest.fixture(scope="module")
def repaired(client: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    with ours(SETUP, tmp_path_factory.mktemp("logs")) as server:
        return draw(client, server, DRAWS, hinted_xargs())


def test_the_plain_distribution_is_a_fair_test(plain: Sample) -> None:
    assert len(common(outcomes(plain, parting(plain)))) >= 3


def test_sampled_calls_have_the_plain_distribution(plain: Sample, repaired: Sample) -> None:
    assert repaired.drafted > DRAWS
    assert p_value(plain, repaired) > 0.001


def test_greedy_calls_beside_them_are_unchanged(plain: Sample, repaired: Sample) -> None:
    assert greedy_unchanged(plain.greedy, repaired.greedy) == 1.0


def test_without_the_repair_the_same_checks_fail(client: httpx.Client, plain: Sample, tmp_path: Path) -> None:
    with ours(SETUP, tmp_path, environment={"OOOSPEC_NO_REPAIR": "1"}) as server:
        try:
            broken = draw(client, server, DRAWS, hinted_xargs())
        except RequestFailed:
            return  # the fault may also bring the engine down
    assert p_value(plain, broken) < 0.001 or greedy_unchanged(plain.greedy, broken.greedy) < 1.0
