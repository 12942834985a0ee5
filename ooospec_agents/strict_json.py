"""JSON as it can be written again: Python's reader also takes NaN and infinity, and reads 1e999 as infinity."""

from __future__ import annotations

import json
import math
from typing import Any


def loads(text: str) -> Any:
    """The value of JSON text.

    Raises:
        ValueError: It is no JSON, or has a number that is not finite.
        RecursionError: It is nested too deep.
    """
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> Any:
    msg = f"{text} is no finite number"
    raise ValueError(msg)
