"""A short soak against a scripted target, and that a soak would see what it looks for."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

pytest.importorskip("prometheus_client")
pytest.importorskip("zmq")

import typer

from ooospec_agents.bench.soak import Usage, growing, main, says_order, usage
from ooospec_agents.bench.soak_traffic import MIX, Traffic, at_once, levels
from ooospec_agents.hint import Hint
from ooospec_agents.testing import ScriptedSidecar
from ooospec_agents.testing.plugin_target import PluginTarget, plugin_target
from ooospec_agents.vllm_plugin import accelerator

CLEAN = {"errors", "different", "hints lost", "hints swapped", "reports missing"}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "REPORT_GRACE_S", 5.0)


@pytest.fixture
async def target() -> AsyncIterator[PluginTarget]:
    with ScriptedSidecar(says_order) as sidecar:
        async with plugin_target(sidecar=sidecar.url) as running:
            yield running


@pytest.fixture
async def traffic(target: PluginTarget) -> AsyncIterator[Traffic]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(target.app), base_url="http://target") as client:
        yield Traffic(client, "scripted")


async def test_all_kinds_of_requests_are_served(traffic: Traffic) -> None:
    await at_once(traffic, 4, 3 * len(MIX))
    assert traffic.problems == []
    assert traffic.counts["requests"] == 30
    assert traffic.counts["identical"] == 27  # and three hung up
    assert traffic.counts["posted arrived"] == traffic.counts["hints posted"] == 6


async def test_a_lost_hint_would_be_seen(
    traffic: Traffic, target: PluginTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target.plugin.accelerator, "hint", lambda *values: None)
    await at_once(traffic, 1, len(MIX))
    assert traffic.counts["hints lost"] == 2


async def test_a_swapped_hint_would_be_seen(
    traffic: Traffic, target: PluginTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = target.plugin.accelerator.hint
    other = Hint.of_call("cancel_order", {"order": "of somebody else"})
    monkeypatch.setattr(target.plugin.accelerator, "hint", lambda tenant, name, hint: post(tenant, name, other))
    await at_once(traffic, 1, len(MIX))
    assert traffic.counts["hints swapped"] == 2


async def test_another_output_would_be_seen(traffic: Traffic, target: PluginTarget) -> None:
    target.script = lambda body: "something else"
    await at_once(traffic, 1, len(MIX))
    assert traffic.counts["different"] == 9


def test_requests_at_a_time_go_up_to_the_most() -> None:
    steps = levels(16)
    assert [next(steps) for _ in range(6)] == [1, 2, 4, 8, 16, 1]


def test_what_this_process_uses_is_seen() -> None:
    before = usage(os.getpid())
    with open(os.devnull):
        assert usage(os.getpid()).files == before.files + 1
    assert before.rss_mb > 10
    assert before.threads >= 1


def test_the_command_writes_its_figures(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(main)
    out = tmp_path / "soak.json"
    done = CliRunner().invoke(app, ["--requests", "100", "--minutes", "5", "--out", str(out)])
    figures: dict[str, Any] = json.loads(out.read_text())
    assert (done.exit_code, figures["problems"]) == (0, [])
    assert (figures["requests"], figures["errors"], figures["identical"]) == (100, 0, 1.0)
    assert CLEAN.isdisjoint(figures["counts"])
    assert figures["rss_start_mb"] > 10


@pytest.mark.parametrize(("leak", "found"), [(0, []), (1, ["files"])])
def test_what_grows_is_named(leak: int, found: list[str]) -> None:
    samples = [Usage(70.0 + at / 100, 40 + leak * at + (at % 5), 9) for at in range(60)]
    assert growing(samples) == found


def test_a_short_soak_says_nothing_of_growth() -> None:
    assert growing([Usage(70.0, files, 9) for files in (10, 20, 40, 80, 160)]) == []
