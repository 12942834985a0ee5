"""Which servers run at once, and in which order: all together where memory holds them, else in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

SPARE_GIB = 0.5
"""Memory left to everything else."""

T = TypeVar("T")


def groups(needs: Mapping[str, float], free: float) -> list[list[str]]:
    """Servers that may run at once, as few groups as come out of taking them in order.

    Args:
        needs: GiB that each server takes, with all that must run beside it, in the order of preference.
        free: GiB that there are.
    """
    made: list[tuple[float, list[str]]] = []
    for kind, need in needs.items():
        for index, (used, kinds) in enumerate(made):
            if used + need <= free - SPARE_GIB:
                made[index] = (used + need, [*kinds, kind])
                break
        else:
            made.append((need, [kind]))
    return [kinds for _, kinds in made]


def turns(items: Sequence[T], made: Sequence[list[str]], block: int) -> Iterator[tuple[list[str], Sequence[T]]]:
    """A group of servers, and the requests that it answers before the next takes its place.

    Blocks of requests go through all groups; every second block in the other order, so that none is always first and
    a server that answered last goes on with the next block.

    Args:
        items: All requests.
        made: The groups.
        block: Requests in a block.
    """
    if len(made) == 1:
        yield made[0], items
        return
    for number, begin in enumerate(range(0, len(items), block)):
        for group in made if number % 2 == 0 else made[::-1]:
            yield group, items[: begin + block]
