from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ooospec_agents.bench.repeat import main, pairs
from ooospec_agents.bench.step_price import price_of, projected


def row(method: str, value: float, low: float, high: float) -> dict[str, Any]:
    return {"dataset": "set", "method": method, "speedup": value, "speedup_low": low, "speedup_high": high}


def test_each_ratio_must_lie_in_the_others_interval() -> None:
    first = [row("ar", 1, 1, 1), row("lexical", 2.0, 1.8, 2.3), row("ooospec", 3.0, 2.5, 3.5)]
    second = [row("ar", 1, 1, 1), row("lexical", 2.2, 1.9, 2.4), row("ooospec", 3.4, 3.2, 3.6), row("off", 1, 1, 1)]
    assert [within for *_, within in pairs(first, second)] == [True, True, False]


def test_the_command_fails_where_a_run_does_not_repeat(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(main)
    for name, value in (("a", 2.0), ("b", 2.1), ("c", 9.0)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"rows": [row("lexical", value, value - 0.5, value + 0.5)]}))
    files = [str(tmp_path / f"{name}.json") for name in "abc"]
    assert CliRunner().invoke(app, files[:2]).exit_code == 0
    assert CliRunner().invoke(app, files[1:]).exit_code == 1


def test_steps_are_priced_between_the_counts_measured() -> None:
    prices = {1: 1.0, 4: 1.3, 8: 2.1}
    assert [price_of(n, prices) for n in (1, 4, 6, 16)] == pytest.approx([1.0, 1.3, 1.7, 4.2])


def test_the_same_drafts_bring_what_their_steps_cost() -> None:
    # Nine tokens: one with the prefill, then a step of four drafts, all right, and one of three, all right.
    report = {"timeline": [[0, 1, 0, 0], [1, 6, 4, 4], [2, 10, 3, 3]], "steps": 3}
    answer = {"token_ids": list(range(10)), "report": report}
    rows = [{"method": "lexical", "answer": answer}, {"method": "record", "answer": answer}]
    assert projected(rows, {1: 1.0, 5: 1.0}) == {"lexical": pytest.approx(4.5)}  # nine steps in two
    assert projected(rows, {1: 1.0, 5: 2.0}) == {"lexical": pytest.approx(9 / (2.0 + 1.75))}
