from __future__ import annotations

from ooospec_agents.bench.blocks import groups, turns
from ooospec_agents.bench.progress import TimeLeft, minutes


def test_servers_run_at_once_where_memory_holds_them() -> None:
    needs = {"stock": 11.0, "ours": 15.5, "suffix": 11.0}
    assert groups(needs, 64.0) == [["stock", "ours", "suffix"]]
    assert groups(needs, 23.0) == [["stock", "suffix"], ["ours"]]
    assert groups(needs, 16.5) == [["stock"], ["ours"], ["suffix"]]


def test_blocks_go_through_all_groups_in_alternating_order() -> None:
    made = [["stock"], ["ours"]]
    assert [(group[0], len(part)) for group, part in turns(range(5), made, 2)] == [
        ("stock", 2), ("ours", 2), ("ours", 4), ("stock", 4), ("stock", 5), ("ours", 5),
    ]  # fmt: skip
    assert list(turns(range(5), [["stock", "ours"]], 2)) == [(["stock", "ours"], range(5))]


def test_the_time_left_is_foretold_from_this_session_alone() -> None:
    now = [100.0]
    left = TimeLeft(10, done=4, clock=lambda: now[0])
    now[0] = 160.0
    assert left.count() == "[5/10, 5 min left]"  # 60 s an answer, five to go
    assert (minutes(30), minutes(5400)) == ("30 s", "1.5 h")
