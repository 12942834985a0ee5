import pytest

from ooospec_agents.vllm_plugin.ceiling import Ceiling, replay_ids


def test_recording_is_played_while_the_output_follows_it() -> None:
    ceiling = Ceiling([1, 2, 3, 4, 5, 6])
    ceiling.commit([1])
    assert ceiling.draft(3).tokens == [2, 3, 4]
    ceiling.commit([2, 3, 4, 5])
    assert ceiling.draft(3).tokens == [6]


def test_another_output_ends_it() -> None:
    ceiling = Ceiling([1, 2, 3, 4])
    ceiling.commit([1])
    ceiling.draft(3)
    ceiling.commit([2, 9])
    assert ceiling.draft(3).tokens == []
    report = ceiling.report()
    assert (report["drafted"], report["accepted"]) == ({"replay": 3}, {"replay": 1})
    assert report["token_sources"] == ["target", "replay", "target"]


def test_draft_cut_short_counts_what_was_kept() -> None:
    ceiling = Ceiling([1, 2, 3, 4])
    ceiling.commit([1])
    ceiling.draft(3)
    ceiling.commit([2, 3])  # vLLM took only the first of the three; the last committed id is its own
    assert ceiling.report()["accepted"] == {"replay": 1}


def test_timeline_has_a_line_for_each_step() -> None:
    ceiling = Ceiling([1, 2, 3])
    ceiling.commit([1])
    ceiling.draft(8)
    ceiling.commit([2, 3])
    assert [line[1:] for line in ceiling.report()["timeline"]] == [[1, 0, 0], [3, 2, 1]]


def test_nothing_to_play_is_plain_decoding() -> None:
    plain = Ceiling([], "r", "off")
    plain.commit([1])
    assert plain.draft(8).tokens == []
    report = plain.report()
    assert (report["id"], report["method"], report["steps"], report["drafted"]) == ("r", "off", 1, {})


def test_replay_needs_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OOOSPEC_ALLOW_REPLAY", raising=False)
    assert replay_ids({"ooospec_replay": [1, 2]}) is None
    monkeypatch.setenv("OOOSPEC_ALLOW_REPLAY", "1")
    assert replay_ids({"ooospec_replay": [1, 2]}) == [1, 2]
    assert replay_ids({"ooospec_replay": "1,2"}) is None
    assert replay_ids(None) is None
