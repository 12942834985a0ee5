"""The report's page, and what it draws in headless Chromium where that is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.explain import Run
from ooospec_agents.bench.report import calibration, confidences, render, run_data, texts
from ooospec_agents.bench.requests import Answer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OUTPUT = '{"name": "book", "arguments": {"place": "</script>", "guests": 4}}'
ITEM = Item(
    "r1", "set", [{"role": "user", "content": "A table </script> for 4"}], [], [{"name": "book", "arguments": {}}]
)


def decode(ids: Sequence[int]) -> str:
    return "".join(map(chr, ids))


def rows() -> list[dict[str, Any]]:
    ids = list(map(ord, OUTPUT))
    calls = [{"name": "book", "arguments": '{"place": "</script>", "guests": 4}'}]
    base = {"token_ids": ids, "calls": calls, "finish": "tool_calls", "prompt_token_ids": [1]}
    arrivals = [[0.1 * n, 1] for n in range(1, len(ids) + 1)]
    hint = {
        "calls": [
            {
                "name": "book",
                "confidence": 0.9,
                "slots": {"place": {"value": "Oslo", "confidence": 0.6}, "guests": {"value": 4}},
            }
        ],
        "source": "sidecar",
    }
    report = {
        "steps": 2, "drafted": {"hint": 40, "schema": 20}, "accepted": {"hint": 30, "schema": 15},
        "timeline": [[0.1, 1, 0, 0], [400.0, len(ids), len(ids) - 1, len(ids) - 1]],
        "token_sources": ["target", *["schema"] * 20, *["hint"] * (len(ids) - 21)],
        "hint": {"arrived": True, "at_token": 1, "used": True, "after_ms": 95.0},
        "draft_ms_total": 1.0, "draft_ms_max": 0.6,
    }  # fmt: skip
    return [
        {"dataset": "set", "item": "r1", "method": "ar", "answer": {**base, "wall_s": 4.0, "first_s": 0.1, "arrivals": arrivals}},
        {
            "dataset": "set", "item": "r1", "method": "ooospec", "hint": hint, "wave_ms": 90.0,
            "answer": {**base, "wall_s": 0.6, "first_s": 0.1, "report": report},
        },
    ]  # fmt: skip


def page() -> str:
    run = Run({"model": "m", "tool_choice": "auto"}, rows())
    return render([run_data({"target": "m", "setting": "own"}, run, [ITEM], decode)])


def embedded(text: str) -> dict[str, Any]:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(data)


def test_the_page_holds_all_it_shows_and_fetches_nothing() -> None:
    text = page()
    run = embedded(text)["runs"][0]
    answer = run["requests"][0]["answers"]["ooospec"]
    assert "".join(answer["tokens"]) == OUTPUT  # a closing tag in it ends no script
    assert answer["steps"][0][:2] == [100.0, 1]  # on the request's clock
    assert (answer["wave_ms"], answer["hint_ms"]) == (90.0, 95.0)
    assert not re.search(r"(?:src|href)=|@import|fetch\(|https?://", text)


def test_a_hint_is_judged_by_the_call_that_came() -> None:
    hint = rows()[1]["hint"]
    answer = Answer(**rows()[1]["answer"])
    assert confidences(hint, answer) == [[0.9, 1.0], [0.6, 0.0], [0.5, 1.0]]
    (point,) = calibration([[0.9, 1.0], [0.9, 1.0], [0.9, 0.0]])
    assert (point["n"], point["right"]) == (3, pytest.approx(2 / 3))
    assert point["low"] < point["right"] < point["high"]


def test_a_character_of_several_tokens_stands_with_its_last() -> None:
    raw = "aü".encode()
    assert texts(list(raw), lambda ids: bytes(ids).decode(errors="replace")) == ["a", "", "ü"]


def drawn(path: Path, where: str = "") -> str:
    """The page's elements after its script ran."""
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={path.parent / 'profile'}", "--virtual-time-budget=5000", "--dump-dom", f"file://{path}{where}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")


@chromium
def test_chromium_draws_table_plots_and_the_opened_request(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page())
    text = drawn(tmp_path / "page.html", "#ooospec/r1")
    assert 'data-drawn="yes"' in text
    assert "data-error" not in text
    body = text.split('<script type="application/json"')[0]
    plain = unescape(re.sub(r"<[^>]+>", "", body))
    assert "6.67x" in plain  # 4.0 s over 0.6 s
    assert OUTPUT in plain.replace("⏎", "")
    assert "hint read at 95 ms" in plain
    assert len(re.findall(r'title="hint"', body)) == len(OUTPUT) - 21
    assert re.search(r'class="wrong">  place: "Oslo"', body)
    assert re.search(r'class="right">  guests: 4', body)
    assert body.count("names and values</title>") == 3  # one point for each tenth of confidence


@chromium
def test_a_fault_of_the_page_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page().replace('"requests": [', '"requests": null, "x": ['))
    text = drawn(tmp_path / "page.html")
    assert "data-error" in text
    assert 'data-drawn="yes"' not in text
