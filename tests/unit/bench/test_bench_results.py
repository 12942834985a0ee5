from pathlib import Path

from ooospec_agents.bench.results import BEGIN, END, render, with_figures
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


def test_what_was_tried_comes_last(tmp_path: Path) -> None:
    figures = {"value": 1.0, "low": 0.9, "high": 1.1, "pairs": 2, "same": 1.0}
    save(tmp_path / "z.json", "overhead", {"target": "m", "dtype": "float32", "what": "chat", **figures})
    without = render(tmp_path)
    (tmp_path / "tried.md").write_text("## What was tried\n", encoding="utf-8")
    assert render(tmp_path) == without + "\n## What was tried\n"


def test_a_soak_shows_what_was_wrong_and_what_the_server_used(tmp_path: Path) -> None:
    counts = {
        "kind server": 60,
        "kind chat": 40,
        "errors": 1,
        "identical": 90,
        "hints posted": 20,
        "posted arrived": 19,
    }
    usage = {"rss_start_mb": 100.5, "rss_end_mb": 101.0, "files_start": 30, "files_end": 30}
    figures = {"requests": 100, "minutes": 2.2, "at_once": 16, "target": "", "counts": counts}
    save(tmp_path / "soak.json", "soak", figures | usage)
    page = render(tmp_path)
    assert "## Soak: scripted engine" in page
    assert "100 requests in 2 minutes, 1 to 16 at a time (60 server, 40 chat): 1 errors, 0 different" in page
    assert "20 hints were posted, 19 found theirs" in page
    assert "| memory, MB | 100.5 | 101.0 |\n| open files | 30 | 30 |\n" in page


def test_figures_in_the_readme_are_what_the_result_files_say() -> None:
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert text == with_figures(text, DOCS / "results")


def test_a_page_gets_the_headline_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    row = {"dataset": "all", "setting": "own", "n": 72, "hints": "", "speedup_low": 1.0, "speedup_high": 1.0}
    rows = [
        row | {"method": "ar", "speedup": 1.0},
        row | {"method": "lexical", "speedup": 3.0, "speedup_low": 2.7, "speedup_high": 3.4},
        row | {"method": "ooospec", "hints": "sidecar", "speedup": 3.5, "speedup_low": 3.1, "speedup_high": 4.0},
        row | {"method": "ooospec", "hints": "gold", "speedup": 9.0},
        row | {"dataset": "other", "method": "lexical", "speedup": 7.0},
    ]
    facts = {"target": "Org/Qwen", "tool_choice": "auto", "setting": "own", "stores": "warm: 40 other dialogues"}
    save(tmp_path / "a.json", "bench", facts | {"rows": rows})
    page = with_figures(f"before {BEGIN} old {END} after", tmp_path)
    assert page == (
        f"before {BEGIN}\n"
        "| target | tool choice | setting | stores | n | lexical | ooospec |\n|---|---|---|---|---|---|---|\n"
        "| Qwen | `auto` | own | warm | 72 | 3.00 [2.70, 3.40] | 3.50 [3.10, 4.00] |\n"
        f"{END} after"
    )
    assert with_figures("no marks", tmp_path) == "no marks"
