"""The search behind copied text."""

from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.drafting.sources.copying import _common

FEW = st.text("ab ", max_size=40)


@given(FEW, FEW, st.integers(1, 8))
def test_the_longest_end_that_occurs_is_found(tail: str, text: str, shortest: int) -> None:
    sizes = [size for size in range(shortest, len(tail) + 1) if tail[-size:] in text]
    assert _common(tail, text, shortest) == max(sizes, default=0)
