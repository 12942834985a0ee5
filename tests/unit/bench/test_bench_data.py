import json
from pathlib import Path

import pytest

from ooospec_agents.bench.data import DataError, load

ROW = '{{"id": "{0}", "messages": [], "tools": []}}\n'


def test_a_folder_is_read_in_turns(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(ROW.format("a1") + ROW.format("a2") + ROW.format("a3"))
    (tmp_path / "b.jsonl").write_text(ROW.format("b1"))
    assert [item.id for item in load(tmp_path)] == ["a1", "b1", "a2", "a3"]
    assert [(item.dataset, item.id) for item in load(tmp_path, 2)] == [("a", "a1"), ("b", "b1")]


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(ROW.format("a1") + '{"id": 1}\n')
    with pytest.raises(DataError, match=r"a\.jsonl, line 2"):
        load(tmp_path)


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        load(tmp_path / "nowhere")


def test_the_shortest_prompts_come_first_where_asked(tmp_path: Path) -> None:
    rows = [{"id": f"r{n}", "messages": [{"role": "user", "content": "x" * n}], "tools": []} for n in (9, 1, 5)]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert [item.id for item in load(tmp_path, 2, shortest=True)] == ["r1", "r5"]
    assert [item.id for item in load(tmp_path, 2)] == ["r9", "r1"]
