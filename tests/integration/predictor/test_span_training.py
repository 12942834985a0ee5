"""Training a span predictor on a tiny BERT: it learns, it can be stopped, and it refuses what it must."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from rich.console import Console  # noqa: E402

from ooospec_agents.catalog import Catalog  # noqa: E402
from ooospec_agents.predictor.model import load  # noqa: E402
from ooospec_agents.predictor.predictor import SpanPredictor  # noqa: E402
from ooospec_agents.training.checkpoint import RESUME  # noqa: E402
from ooospec_agents.training.spans import train as train_module  # noqa: E402
from ooospec_agents.training.spans.calibrate import calibrate  # noqa: E402
from ooospec_agents.training.spans.evaluate import evaluate  # noqa: E402
from ooospec_agents.training.spans.settings import SpanSettings  # noqa: E402
from ooospec_agents.training.spans.train import train  # noqa: E402
from ooospec_agents.training.traces import Call, DataError, Request, read_requests  # noqa: E402

SETTINGS = SpanSettings(
    learning_rate=3e-3, head_rate=1e-2, dropout=0.0, lower=1, requests_per_step=3, passes=4, trace_passes=0
)
QUIET = Console(quiet=True)


def run(bert: Path, data: Path, out: Path, settings: SpanSettings = SETTINGS, evaluation: str = "eval") -> None:
    train(bert, data / "train.jsonl", None, data / f"{evaluation}.jsonl", out, settings, console=QUIET)


def test_it_learns_to_point(bert: Path, data: Path, tmp_path: Path) -> None:
    run(bert, data, tmp_path / "out", replace(SETTINGS, passes=60))
    assert not (tmp_path / "out" / RESUME).exists()
    asked = read_requests(data / "train.jsonl")
    calibrate(tmp_path / "out", asked)
    card = evaluate(SpanPredictor.from_folder(tmp_path / "out"), asked, QUIET)
    assert card["slot_exact"] >= 0.75
    assert card["function_accuracy_multi"] > 0.8
    assert card["slot_exact"] > card["baselines"]["always_null"]["slot_exact"]
    assert card["baselines"]["lexical"]["valued_slots"] == card["valued_slots"] == 12


def test_a_stopped_run_ends_where_an_unbroken_one_does(bert: Path, data: Path, tmp_path: Path) -> None:
    short = replace(SETTINGS, passes=2)
    run(bert, data, tmp_path / "whole", short)
    steps = 0
    step = train_module._step

    def stopping(*arguments: object, **named: object) -> float:
        nonlocal steps
        steps += 1
        if steps == 1:
            signal.raise_signal(signal.SIGTERM)
        return step(*arguments, **named)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_module, "_step", stopping)
        run(bert, data, tmp_path / "broken", short)
    assert (tmp_path / "broken" / RESUME).exists()
    assert steps == 1
    whole, halfway = load(tmp_path / "whole").state_dict(), load(tmp_path / "broken").state_dict()
    run(bert, data, tmp_path / "broken", short)
    broken = load(tmp_path / "broken").state_dict()
    # Texts read beside others round differently, and weights are kept in eight bits.
    assert max((whole[name] - broken[name]).abs().max() for name in whole) < 0.003
    assert max((whole[name] - halfway[name]).abs().max() for name in whole) > 0.006


def test_a_stopped_run_does_not_go_on_with_other_settings(bert: Path, data: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_module, "_step", lambda *_: signal.raise_signal(signal.SIGTERM) or 1.0)
        run(bert, data, tmp_path / "out")
    with pytest.raises(DataError, match="other settings"):
        run(bert, data, tmp_path / "out", replace(SETTINGS, seed=1))


def test_data_that_calls_an_evaluated_function_is_refused(bert: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'weather'"):
        run(bert, data, tmp_path / "out", evaluation="train")


def test_traces_that_call_an_evaluated_function_are_refused(bert: Path, data: Path, tmp_path: Path) -> None:
    traces = data / "traces.jsonl"
    line = {"id": "r0", "finish": "tool_calls", "calls": [{"name": "stocks", "arguments": "{}"}]}
    traces.write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match="'stocks'"):
        train(bert, data / "train.jsonl", traces, data / "eval.jsonl", tmp_path / "out", SETTINGS, console=QUIET)


def test_a_predictor_answers_whatever_it_is_given(bert: Path, data: Path, tmp_path: Path) -> None:
    run(bert, data, tmp_path / "out", replace(SETTINGS, passes=1))
    predictor = SpanPredictor.from_folder(tmp_path / "out")
    request: Request = read_requests(data / "train.jsonl")[0]
    assert request.calls[0] == Call("weather", {"city": "Rome", "days": 2})
    catalog = Catalog.from_tools(list(request.tools))
    predictor.prepare(catalog)
    for messages in ([], [None, 3], [{"role": "user", "content": None}], [{"role": "user", "content": "é😀" * 900}]):
        hint = predictor.predict(catalog, messages)
        assert hint is not None
        shares = [call.confidence for call in (*hint.calls, *hint.alternatives)]
        assert sum(shares) + hint.no_call == pytest.approx(1.0, abs=0.1)
    assert predictor.predict(Catalog.from_tools([]), request.messages) is None
    named = predictor.predict(catalog, request.messages, named="news", no_call_allowed=False)
    assert named is not None
    assert [call.name for call in named.calls] == ["news"]
    assert predictor.predict(catalog, request.messages, named="unknown") is None
