"""The micro-benchmark's work is what it says."""

from ooospec_agents.bench.drafting_speed import STOP_ID, load, steps
from ooospec_agents.testing.engine import CharacterCodec


def test_there_are_as_many_tools_and_tokens_as_asked_for() -> None:
    work = load(CharacterCodec(), tools=50, committed=2000, calls=3)
    names = [function.name for function in work.spec.catalog.functions]
    assert (len(names), len(set(names))) == (50, 50)
    assert work.start >= 2000
    assert work.token_ids[-1] == STOP_ID


def test_every_step_behind_the_committed_tokens_is_timed() -> None:
    work = load(CharacterCodec(), tools=5, committed=100, calls=2)
    taken = list(steps(CharacterCodec(), work, hinted=True, cold=False))
    left = len(work.token_ids) - work.start
    assert 1 < len(taken) < left  # fewer than one a token: drafts were right
