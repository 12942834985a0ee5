"""The shipped adapters and their model cards."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ooospec_agents.sidecar import adapters
from ooospec_agents.training import model_card
from ooospec_agents.training.settings import PRESETS

SHIPPED = sorted(adapters.FOLDER.iterdir())
MIB = 2**20


def test_there_is_one_for_the_small_preset() -> None:
    assert adapters.shipped(PRESETS["smollm2-135m"].base) in SHIPPED


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_its_card_says_what_its_files_say(folder: Path) -> None:
    assert (folder / model_card.CARD).read_text(encoding="utf-8") == model_card.card_of(folder)


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_it_is_small_and_made_for_the_model_that_it_is_named_after(folder: Path) -> None:
    assert sum(file.stat().st_size for file in folder.iterdir()) < 25 * MIB
    base = json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"]
    assert adapters.shipped(base) == folder


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_it_says_what_it_was_trained_on_and_held_back_from(folder: Path) -> None:
    record = json.loads((folder / "training.json").read_text())
    assert set(record["inputs"]) == {"requests", "traces"}
    assert set(record["decontaminated_against"]) == {"api_bank.jsonl", "bfcl_java_js.jsonl", "tool_alpaca.jsonl"}


FIGURES = dict.fromkeys(model_card.FIGURES, 0.5) | {"leading": 0.75, "valued_slots": 4}
REPORT = {
    **FIGURES,
    "slot_exact": 0.625,
    "requests": 8,
    "wave_ms_p50": 12.0,
    "worst_errors": ["r1 city: said 'Oslo'"],
    "by_source": {"a": FIGURES},
    "by_slot_type": {"string": FIGURES, "object": {**FIGURES, "valued_slots": 0}},
    "baselines": {"always_null": {**FIGURES, "slot_exact": None}},
    "calibration": {"sure_share": 0.25, "sure_right": 1.0, "expected_error": 0.125},
}
RECORD = {
    "base": "Org/Small",
    "inputs": {"requests": "aa"},
    "decontaminated_against": {"eval.jsonl": "bb"},
    "settings": {"rank": 16, "learning_rate": 0.001, "requests_per_step": 4},
    "progress": {"steps": 10, "requests": 40, "tokens": 12345, "seconds": 630.0},
    "hardware": {"device": "cpu", "dtype": "float32"},
}


def test_a_card_is_written_and_keeps_lines_of_the_data_out(tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text(json.dumps(RECORD))
    for name in ("own", "untrained"):
        (tmp_path / f"{name}.json").write_text(json.dumps(REPORT | {"slot_exact": 0.125} if name != "own" else REPORT))
    options = ["--adapter", str(tmp_path), "--report", str(tmp_path / "own.json")]
    options += ["--beside", "without=" + str(tmp_path / "untrained.json")]
    result = CliRunner().invoke(model_card.app, options)
    assert result.exit_code == 0, result.output
    card = (tmp_path / model_card.CARD).read_text()
    assert "| **this adapter** | 8 | 50.0 % | 50.0 % | 62.5 % | 50.0 % | 50.0 % |" in card
    assert "| without | 8 | 50.0 % | 50.0 % | 12.5 % | 50.0 % | 50.0 % |" in card
    assert "| always-null |  | 50.0 % | 50.0 % | - | 50.0 % | 50.0 % |" in card
    assert "10 steps, 40 requests" in card.replace("\n", " ")
    assert "12,345 tokens in 10 minutes on two CPU cores (float32)" in card
    assert "| held out: eval.jsonl | `bb` |" in card
    assert "object" not in card
    assert "Oslo" not in (tmp_path / model_card.REPORT).read_text()
