from __future__ import annotations

import json
from pathlib import Path

import pytest

from ooospec_agents.bench.bfcl import load_bfcl
from ooospec_agents.bench.data import DataError

ROW = {
    "id": "simple_java_3",
    "question": [[{"role": "user", "content": "Set the path"}]],
    "function": [
        {
            "name": "Bridge.set",
            "description": "Sets.",
            "parameters": {
                "type": "dict",
                "properties": {
                    "path": {"type": "String", "description": "where"},
                    "sizes": {"type": "ArrayList", "items": {"type": "float"}},
                    "more": {"type": "dict", "properties": {"deep": {"type": "Boolean"}}},
                    "count": {"type": "any", "default": 3},
                },
                "required": ["path"],
            },
        }
    ],
}
TRUTH = {"id": "simple_java_3", "ground_truth": [{"Bridge.set": {"path": ["/a", "a"], "count": ["", 3]}}]}


def folder(path: Path) -> Path:
    (path / "possible_answer").mkdir()
    (path / "BFCL_v4_simple_java.json").write_text(json.dumps(ROW) + "\n")
    (path / "possible_answer" / "BFCL_v4_simple_java.json").write_text(json.dumps(TRUTH) + "\n")
    return path


def test_a_request_is_read_in_openais_form(tmp_path: Path) -> None:
    (item,) = load_bfcl("simple_java", folder(tmp_path))
    assert (item.id, item.dataset) == ("bfcl_simple_java_3", "bfcl_simple_java")
    assert item.messages == [{"role": "user", "content": "Set the path"}]
    assert item.tools[0]["function"]["name"] == "Bridge_set"
    assert item.tools[0]["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "where"},
            "sizes": {"type": "array", "items": {"type": "number"}},
            "more": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
            "count": {"type": "string", "default": 3},
        },
        "required": ["path"],
    }
    assert item.gold == [{"name": "Bridge_set", "arguments": {"path": "/a"}}]


def test_a_category_whose_name_ends_like_another_is_not_taken_for_it(tmp_path: Path) -> None:
    for name in ("multiple", "live_multiple", "parallel_multiple"):
        row = {**ROW, "id": f"{name}_0"}
        (tmp_path / f"BFCL_v4_{name}.json").write_text(json.dumps(row) + "\n")
    assert [item.id for item in load_bfcl("multiple", tmp_path)] == ["bfcl_multiple_0"]


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No file 'BFCL_v4_simple_python.json'"):
        load_bfcl("simple_python", tmp_path)
    with pytest.raises(DataError, match="no category 'multi_turn'"):
        load_bfcl("multi_turn")
