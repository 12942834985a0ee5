"""JSON as it can be written again: Python's reader also takes NaN and infinity, and reads 1e999 as infinity.

And when two of its values are the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def loads(text: str) -> Any:
    """The value of JSON text.

    Raises:
        ValueError: It is no JSON, or has a number that is not finite.
        RecursionError: It is nested too deep.
    """
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; 1 is 1.0, but not True."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> Any:
    msg = f"{text} is no finite number"
    raise ValueError(msg)
