from pathlib import Path

from ooospec_agents.bench.results import render
from ooospec_agents.bench.summary import save

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_what_the_result_files_say() -> None:
    assert (DOCS / "results.md").read_text(encoding="utf-8") == render(DOCS / "results")


def test_a_section_shows_figure_and_command(tmp_path: Path) -> None:
    figures = {"value": 1.004, "low": 0.99, "high": 1.02, "pairs": 200, "same": 1.0}
    save(tmp_path / "chat.json", "overhead", {"target": "m", "dtype": "bfloat16", "what": "plain chat", **figures})
    page = render(tmp_path)
    assert "| plain chat | 200 | 1.00 [0.99, 1.02] | 1.000 |" in page
    assert "pytest" in page  # the command that ran
