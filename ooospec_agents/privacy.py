"""What a log may say of a fault. Messages of errors can quote requests, so they are left out unless asked for."""

from __future__ import annotations

import os
import traceback
from pathlib import Path


def debugging() -> bool:
    """Whether the operator asked for everything, request content included: OOOSPEC_DEBUG is set."""
    return os.environ.get("OOOSPEC_DEBUG", "0").lower() not in ("", "0", "false")


def told(error: BaseException) -> str:
    """An error's kind and place; with OOOSPEC_DEBUG its message too."""
    if debugging():
        return f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"


def trace(error: BaseException) -> BaseException | None:
    """An error to be logged with its traceback, or None."""
    return error if debugging() else None
