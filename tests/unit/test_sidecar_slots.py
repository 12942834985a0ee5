"""A sidecar's answer beside lexical guesses; with the weights set here, the probabilities are worked out by hand."""

from __future__ import annotations

import json
from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.drafting.sources.span_fit import LEAST, Likely, Option
from ooospec_agents.hint import SlotHint
from ooospec_agents.sidecar import slots
from ooospec_agents.sidecar.slots import FEATURES, WEIGHTS, rows, weighed_slot


def likely(none: float = 0.2, **found: float) -> Likely:
    return Likely({repr(value): Option(value, share, False) for value, share in found.items()}, none)


def told(found: SlotHint | None) -> tuple[Any, float]:
    """The value, "absent" where there is none, and its confidence."""
    assert found is not None
    return "absent" if found.absent else found.value, found.confidence


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lexical probabilities as they are; what the sidecar said counts by its odds."""
    weights = dict.fromkeys(FEATURES, 0.0) | {"lexical": 1.0, "lexical none": 1.0, "said, sure": 1.0}
    monkeypatch.setattr(slots, "WEIGHTS", weights)


@pytest.mark.usefixtures("plain")
def test_without_a_readable_answer_the_lexical_guess_stands() -> None:
    assert told(weighed_slot(None, likely(Oslo=0.6, Rome=0.2), "place")) == ("Oslo", pytest.approx(0.6))


@pytest.mark.usefixtures("plain")
def test_what_both_say_is_surer_than_either() -> None:
    said = SlotHint(value="Rome", confidence=0.8)  # odds of 4: 0.2 becomes 0.8, beside 0.6 and 0.2
    found = weighed_slot(said, likely(Oslo=0.6, Rome=0.2), "place")
    assert told(found) == ("Rome", pytest.approx(0.8 / 1.6))


@pytest.mark.usefixtures("plain")
def test_what_only_the_sidecar_says_has_the_least_lexical_probability() -> None:
    said = SlotHint(value="Bern", confidence=0.99)  # odds of 99: 0.01 becomes 0.99
    found = weighed_slot(said, likely(Oslo=0.8), "place")
    assert told(found) == ("Bern", pytest.approx(0.99 / (0.99 + 0.8 + 0.2)))


@pytest.mark.usefixtures("plain")
def test_a_weak_answer_gives_way() -> None:
    found = weighed_slot(SlotHint(value="Bern", confidence=0.5), likely(Oslo=0.8), "place")
    assert told(found) == ("Oslo", pytest.approx(0.8 / 1.01))


@pytest.mark.usefixtures("plain")
def test_a_slot_that_is_left_out_stays_so_where_no_value_is_likelier() -> None:
    absent = SlotHint(absent=True, confidence=0.9)
    assert told(weighed_slot(absent, likely(none=0.7, Oslo=0.3), "place")) == ("absent", pytest.approx(0.7))
    assert told(weighed_slot(absent, likely(none=0.1, Oslo=0.9), "place")) == ("Oslo", pytest.approx(0.9))


@pytest.mark.usefixtures("plain")
def test_null_may_be_a_value() -> None:
    null = SlotHint(value=None, confidence=0.9)
    assert told(weighed_slot(null, likely(none=1.0), "place")) == (None, pytest.approx(1.0))


def test_of_a_slot_of_which_nothing_is_known_nothing_is_said() -> None:
    assert weighed_slot(None, likely(none=1.0), "place") is None


@pytest.mark.parametrize(
    ("kind", "group"), [("boolean", "closed"), ("integer", "numeric"), ("array", "nested"), ("place", "text")]
)
def test_answers_are_trusted_by_what_is_asked_for(kind: str, group: str) -> None:
    (_, features), (_, none) = rows(SlotHint(value="x", confidence=0.5), likely(none=0.5), kind)
    assert features == {
        "lexical": log(LEAST),
        "said alone": 1.0,
        "said": 1.0,
        "said, sure": 0.0,
        f"said, {group}": 1.0,
    }
    assert none == {"lexical none": log(0.5)}


def test_the_weights_that_ship_were_fitted_to_these_features() -> None:
    shipped = json.loads((slots.resources.files("ooospec_agents.sidecar") / "slot_weights.json").read_text())
    assert tuple(shipped["weights"]) == FEATURES
    assert shipped["slots"] > 300
    assert all(len(digest) == 64 for digest in shipped["inputs"].values())
    assert WEIGHTS["lexical"] > 0 < WEIGHTS["said, sure"]


VALUES = st.one_of(
    st.text(max_size=5), st.integers(-3, 3), st.booleans(), st.none(), st.lists(st.integers(), max_size=2)
)


@given(
    said=st.none() | st.builds(SlotHint, value=VALUES, absent=st.booleans(), confidence=st.floats(0, 1)),
    found=st.lists(st.tuples(VALUES, st.floats(0, 1)), max_size=4),
    none=st.floats(0, 1),
    kind=st.sampled_from(["option", "integer", "array", "text", "other"]),
)
def test_a_confidence_is_a_probability(
    said: SlotHint | None, found: list[tuple[Any, float]], none: float, kind: str
) -> None:
    options = {repr(value): Option(value, share, False) for value, share in found}
    joined = weighed_slot(said, Likely(options, none), kind)
    assert joined is None or 0.0 <= joined.confidence <= 1.0
