from pathlib import Path

from ooospec_agents.bench.timeline import Picture, draw, lay_out

REPORT = {
    "token_sources": ["target", "hint"],
    "timeline": [[100.0, 1, 0, 0], [200.0, 3, 2, 1]],
    "hint": {"arrived": True, "at_token": 1, "used": True, "after_ms": 150.0},
}


def test_text_is_wrapped_at_its_width_and_its_line_ends() -> None:
    assert lay_out(["ab", "c\nd"], width=2) == [(0, 0, "ab", 0), (1, 0, "c", 1), (2, 0, "d", 1)]


def test_tokens_past_the_report_are_the_targets() -> None:
    picture = Picture.of_report("task", ["a", "b", "c"], REPORT, 0.2, 0.3, 3)
    assert picture.sources == ["target", "hint", "target"]
    assert (picture.total_ms, picture.plain_ms, picture.hint_ms) == (200.0, 300.0, 150.0)


def test_a_picture_is_written(tmp_path: Path) -> None:
    draw(Picture.of_report("a $task", ["{", '"$x', "}\n"], REPORT, 0.2, 0.3, 3), tmp_path / "out" / "t.png")
    assert (tmp_path / "out" / "t.png").read_bytes().startswith(b"\x89PNG")
