"""What an examination found: one fact, how bad it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "warning", "problem"]
"""Right; not needed or not looked at; works, but less well than it could; does not work."""


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        check: What was looked at: one word or two.
        level: How bad it is.
        says: What was found.
        mend: The command that mends it, or "" where there is nothing to mend.
    """

    check: str
    level: Level
    says: str
    mend: str = ""
