"""A recorded output drafted again takes the steps that a person counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.explain import Run, causes_table, explain, explain_as
from ooospec_agents.bench.methods import method_named
from ooospec_agents.bench.redraft import Recorded, Redrafter
from ooospec_agents.hint import Hint

STOP = 0
TOOL = {
    "type": "function",
    "function": {
        "name": "book",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "guests": {"type": "integer"}},
            "required": ["place", "guests"],
        },
    },
}
ITEM = Item("r1", "set", [{"role": "user", "content": "A table for us please"}], [TOOL])
OUTPUT = '<tool_call>\n{"name": "book", "arguments": {"place": "Zq", "guests": 91}}\n</tool_call>'
RIGHT = Hint.of_call("book", {"place": "Zq", "guests": 91}, 0.95)


class Letters:
    """A tokenizer whose tokens are characters."""

    vocab_size = 0x110000

    def encode(self, text: str) -> list[int]:
        return [ord(char) for char in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


def recorded(hint: Hint | None = None, hint_at: int = 1, text: str = OUTPUT, **changes: Any) -> Recorded:
    ids = [*map(ord, text), STOP]
    values = {"item": ITEM, "method": "ooospec", "wire_format": "hermes", "required": True, "token_ids": ids}
    return Recorded(**{**values, "hint": hint, "hint_at": hint_at, **changes})


def redrafter(width: int = 500) -> Redrafter:
    return Redrafter(Letters(), [STOP], width)


def test_a_right_hint_leaves_the_first_step_and_the_last() -> None:
    steps = redrafter().steps(recorded(RIGHT))
    assert [step.blame.cause for step in steps] == ["first step", "last step"]
    assert sum(step.committed for step in steps) == len(OUTPUT) + 1
    assert "".join(step.text for step in steps) == OUTPUT


def test_without_a_hint_the_values_are_missing() -> None:
    steps = redrafter().steps(recorded())
    found = {(step.blame.cause, step.blame.slot) for step in steps}
    assert {("missing value", "guests")} <= found or {("wrong value", "guests")} <= found
    assert len(steps) > 4


def test_a_wrong_value_is_its_hints_fault() -> None:
    steps = redrafter().steps(recorded(Hint.of_call("book", {"place": "Bergen", "guests": 91}, 0.95)))
    first = steps[1].blame
    assert (first.cause, first.slot, first.source) == ("wrong value", "place", "hint")
    assert (first.expected[:6], first.came[:2]) == ("Bergen", "Zq")


def test_what_a_late_hint_would_have_known_is_its_lateness() -> None:
    late = redrafter().steps(recorded(RIGHT, hint_at=OUTPUT.index("guests")))
    never = redrafter().steps(recorded())
    assert "hint late" in [step.blame.cause for step in late]
    assert "hint late" not in [step.blame.cause for step in never]


def test_a_short_width_is_named() -> None:
    steps = redrafter(width=20).steps(recorded(RIGHT))
    assert "full draft" in [step.blame.cause for step in steps]


def raw_file(tmp_path: Path) -> Path:
    answer = {
        "token_ids": [*map(ord, OUTPUT), STOP],
        "calls": [{"name": "book", "arguments": '{"place": "Zq", "guests": 91}'}],
    }
    report = {
        "method": "ooospec", "wire_format": "hermes", "steps": 2, "tokens": 70,
        "hint": {"arrived": True, "at_token": 1, "used": True, "after_ms": 1.0},
    }  # fmt: skip
    rows = [
        {"options": {"tool_choice": "required", "model": "m"}},
        {"item": "r1", "dataset": "set", "method": "record", "answer": answer},
        {"item": "r1", "dataset": "set", "method": "perfect", "scope": "a", "answer": {**answer, "report": report}},
        {"item": "r1", "dataset": "set", "method": "ooospec", "scope": "b", "answer": {**answer, "report": report}},
    ]
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rows_of_a_run_are_explained_where_their_hint_is_known(tmp_path: Path) -> None:
    run = Run.read(raw_file(tmp_path))
    (one,) = explain(run, [ITEM], redrafter())
    assert (one.method, len(one.steps), one.recorded_steps) == ("perfect", 2, 2)
    assert run.unknown == {"ooospec": 1}


def test_plain_outputs_are_drafted_by_any_method(tmp_path: Path) -> None:
    run = Run.read(raw_file(tmp_path))
    counts = {}
    for name in ("perfect", "degraded:0", "lexical"):
        (one,) = explain_as(run.as_drafted([ITEM], method_named(name)), redrafter(), name)
        counts[name] = len(one.steps)
        assert causes_table([one]).row_count
    # A hint whose function and values are all wrong knows nothing.
    assert counts["perfect"] == 2 < counts["lexical"]
    assert counts["degraded:0"] > 2


def test_no_raw_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match="no raw file"):
        Run.read(tmp_path / "x.jsonl")
