"""The pages are built strictly: every page is listed, every link and anchor leads somewhere."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAX_QUICK_START_LINES = 15


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(site),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_every_link_leads_somewhere(tmp_path: Path) -> None:
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "troubleshooting.html").exists()


def test_links_to_nowhere_would_be_seen(tmp_path: Path) -> None:
    links = ["nowhere.md", "modes.md#nowhere", "/modes.md"]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("\n".join(f"[x]({link})" for link in links), "utf-8")
    (tmp_path / "docs" / "modes.md").write_text("# Modes\n", "utf-8")
    settings = (ROOT / "mkdocs.yml").read_text("utf-8").partition("nav:")[0]
    (tmp_path / "mkdocs.yml").write_text(settings, "utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert [link for link in links if link not in done.stderr] == []


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "README.md").read_text("utf-8"))
    assert len(links) > 2
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_quick_start_is_short() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Quick start\n")[2].partition("\n## ")[0]
    code = [line for block in re.findall(r"```\w+\n(.*?)```", section, re.S) for line in block.splitlines() if line]
    assert 0 < len(code) <= MAX_QUICK_START_LINES


MERGE_MARK = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.M)


def test_no_page_holds_the_marks_of_a_merge() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    assert len(pages) > 10
    assert [page.name for page in pages if MERGE_MARK.search(page.read_text("utf-8"))] == []


def test_the_marks_of_a_merge_would_be_seen() -> None:
    assert [
        bool(MERGE_MARK.search(f"a\n{mark}\nb")) for mark in ("<<<<<<< HEAD", "=======", ">>>>>>> main", "---")
    ] == [
        True,
        True,
        True,
        False,
    ]
