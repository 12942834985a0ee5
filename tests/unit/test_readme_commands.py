"""Every command that README and docs show exists, and takes the flags that are shown."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ooospec_agents.cli import app

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md") if page.stem != "results"))


def shown_commands(program: str) -> list[str]:
    """Lines of fenced blocks that run the program, with continued lines joined."""
    lines: list[str] = []
    for page in PAGES:
        for block in re.findall(r"^```\w*\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S):
            joined = block.replace("\\\n", " ")
            lines += [line.strip() for line in joined.splitlines() if line.strip().startswith(program + " ")]
    return lines


def test_the_reader_of_pages_finds_commands() -> None:
    assert "make demo" in shown_commands("make")
    assert any(line.startswith("ooospec serve target") for line in shown_commands("ooospec"))


@pytest.mark.parametrize("line", shown_commands("make"))
def test_make_targets_exist(line: str) -> None:
    targets = re.findall(r"^([\w.-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    words = shlex.split(line, comments=True)[1:]
    assert [word for word in words if "=" not in word and word not in targets] == []


@pytest.mark.parametrize("line", shown_commands("ooospec"))
def test_commands_and_flags_exist(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = [word for word in words[:2] if not word.startswith("-")]
    command = command if command[0] == "serve" else command[:1]
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*command, "--help"])
    assert shown.exit_code == 0, shown.output
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert [flag for flag in flags if flag not in shown.output] == []


def test_every_make_target_is_declared_phony() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([\w-]+):", text, re.M))
    (declared,) = re.findall(r"^\.PHONY: (.*)$", text, re.M)
    assert targets == set(declared.split())


def test_files_named_in_the_architecture_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    roots = ("ooospec_agents", "integrations")
    paths = {path.as_posix() for top in roots for path in [ROOT / top, *(ROOT / top).rglob("*")]}
    named = [name.rstrip("/") for name in re.findall(r"`([\w/]+(?:\.py|/))`", text)]
    assert len(named) > 30
    assert [name for name in named if not any(path.endswith("/" + name) for path in paths)] == []
