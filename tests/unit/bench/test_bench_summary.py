from typing import Any

import pytest

from ooospec_agents.bench.summary import summarize


def raw(method: str, item: str, seconds: float, ids: list[int], steps: int = 0) -> dict[str, Any]:
    answer: dict[str, Any] = {"token_ids": ids, "wall_s": seconds, "calls": [{"name": "f", "arguments": "{}"}]}
    if steps:
        hint = {"arrived": True, "at_token": 0, "used": item == "a", "after_ms": 1.0}
        answer["report"] = {
            "steps": steps, "draft_ms_total": 0.2 * steps, "draft_ms_max": 0.3, "hint": hint,
            "drafted": {"schema": 3}, "accepted": {"schema": 2},
        }  # fmt: skip
    return {"dataset": "set", "item": item, "method": method, "answer": answer}


ROWS = [
    raw("ar", "a", 4.0, [1, 2, 3, 4]), raw("ooospec", "a", 1.0, [1, 2, 3, 4], 2), raw("lexical", "a", 2.0, [1, 2, 3, 4], 2),
    raw("ar", "b", 2.0, [5, 6]), raw("ooospec", "b", 2.0, [5, 7], 1), raw("lexical", "b", 2.0, [5, 6], 1),
    raw("record", "b", 9.0, [5, 6]), raw("ar", "unfinished", 99.0, [1]),
]  # fmt: skip


def test_rows_are_worked_out_over_requests_that_all_methods_answered() -> None:
    rows = {row["method"]: row for row in summarize(ROWS)}
    ours = rows["ooospec"]
    assert (ours["n"], ours["seconds"], ours["tokens"], ours["steps"]) == (2, 3.0, 6, 3)
    assert ours["speedup"] == 2.0  # 6 s over 3 s
    assert ours["identical"] == 0.5
    assert ours["acceptance_length"] == 2.0
    assert ours["speedup_tokens"] == 2.5  # mean of 4 and 1 tokens/s over mean of 1 and 1
    assert ours["hint_used"] == 0.5
    assert ours["draft_ms_step"] == pytest.approx(0.2)
    assert ours["accepted"] == {"schema": 4}
    assert ours["over_lexical"][0] == pytest.approx(4 / 3)
    assert rows["ar"]["speedup"] == 1.0
