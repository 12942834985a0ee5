"""Every row of the threat model names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def rows(page: str) -> list[str]:
    """The rows of the page's table, its head left out."""
    return [line for line in page.splitlines() if line.startswith("| ")][1:]


def missing(row: str) -> list[str]:
    """What is wrong with a row: tests that it names and that do not exist, or that it names none."""
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", row.rpartition(" | ")[2])
    absent = [f"{file}::{name}" for file, name in named if name not in functions(ROOT / "tests" / file)]
    return absent if named else ["no test"]


def functions(file: Path) -> set[str]:
    if not file.is_file():
        return set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, kinds)}


def test_every_row_names_tests_that_exist() -> None:
    found = rows((ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(found) >= 10
    assert {row: missing(row) for row in found if missing(row)} == {}


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ("| a | b | `unit/test_security_page.py::test_gone` |", ["unit/test_security_page.py::test_gone"]),
        ("| a | b | `unit/test_gone.py::test_gone` |", ["unit/test_gone.py::test_gone"]),
        ("| a | `unit/test_security_page.py::rows` | by hand |", ["no test"]),
        ("| a | b | `unit/test_security_page.py::rows` |", []),
    ],
)
def test_a_row_without_its_test_would_be_seen(row: str, wrong: list[str]) -> None:
    assert missing(row) == wrong
