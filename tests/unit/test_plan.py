"""What is left of an expectation when the target wrote what was expected."""

from ooospec_agents.drafting.budget import Budget
from ooospec_agents.drafting.piece import Piece
from ooospec_agents.drafting.plan import ENOUGH, Draft, Plan

PIECES = [Piece("key", "abc", "schema", 0.9), Piece("value", "de", "hint", 0.45), Piece("stop", "", "schema", 0.4)]


def plan() -> Plan:
    return Plan.of(PIECES, [1, 2, 3], [2, 2, 1], stop=9)


def test_a_token_belongs_to_the_piece_in_which_it_begins() -> None:
    assert plan().sources == ["schema", "schema", "hint", "schema"]
    assert plan().ends == [2, 3, 4]


def test_a_draft_is_as_long_as_the_limit_allows() -> None:
    assert plan().draft(2, Budget(price=0.0)) == Draft([1, 2], ["schema", "schema"])


def test_what_follows_shapes_the_last_token_but_is_no_part_of_the_plan() -> None:
    # "abc", "de" and beyond them "fgh", as tokens "ab", "cd", "ef", "gh".
    made = Plan.of(PIECES[:2], [1, 2, 3, 4], [2, 2, 2, 2], beyond=3)
    assert (made.tokens, made.sources, made.ends) == ([1, 2, 3], ["schema", "schema", "hint"], [2, 3])


def test_characters_of_several_tokens_do_not_shift_what_follows() -> None:
    # Each token of a character that takes three decodes to one mark.
    made = Plan.of([Piece("text", "a\u2014", "copy", 0.9)], [1, 2, 3, 4, 5], [1, 1, 1, 1, 2], beyond=2)
    assert made.tokens == [1, 2, 3, 4]
    assert made.ends == [4]


def test_what_came_true_is_no_longer_doubted() -> None:
    left = plan().after(2)
    assert left is not None
    assert (left.tokens, left.ends) == ([3, 9], [1, 2])
    assert left.joint == [0.5, 0.4 / 0.9]


def test_a_piece_that_began_as_expected_is_likelier_than_before() -> None:
    left = plan().after(1)
    assert left is not None
    assert left.joint[0] == 0.95
    assert left.joint[1] / left.joint[0] == 0.5


def test_a_plan_that_is_over_is_none() -> None:
    assert plan().after(4) is None


def test_short_rests_are_thought_about_again_unless_the_output_ends_there() -> None:
    long = [Piece("text", "x" * (ENOUGH + 1), "copy", 0.9)]
    tokens = list(range(ENOUGH + 1))
    open_end = Plan.of(long, tokens, [1] * len(tokens), stop=None)
    assert open_end.after(1) is not None
    assert open_end.after(2) is None
