"""Whitespace and value habits of JSON as one target writes it, and values rendered in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Gap = Literal["open", "colon", "comma", "close", "empty"]
"""Where whitespace may stand: after `{`, after `:`, after `,`, before `}`, and between the braces of `{}`."""

MAX_GAP = 40
"""Longest whitespace learned, in characters: what is longer is no habit."""


@dataclass(frozen=True)
class Profile:
    """A whole layout: indentation in characters (0: one line), text after a colon and after a comma."""

    indent: int = 0
    colon: str = " "
    comma: str = " "

    def gap(self, gap: Gap, level: int) -> str:
        """The whitespace at a gap of an object at `level` (1: the call, 2: its arguments, 3 and more: values)."""
        if gap == "colon":
            return self.colon
        if gap == "empty":
            return ""
        if not self.indent:
            return self.comma if gap == "comma" else ""
        inside = level - 1 if gap == "close" else level
        return "\n" + " " * (self.indent * inside)


FLAT = Profile()
INDENTED = Profile(indent=2)


@dataclass
class Style:
    """How one target lays out a call: a profile, and each gap as it was last seen."""

    profile: Profile = FLAT
    seen: dict[tuple[Gap, int], str] = field(default_factory=dict)
    ascii_only: bool = False

    def gap(self, gap: Gap, level: int) -> str:
        """The whitespace expected at a gap."""
        known = self.seen.get((gap, level))
        return self.profile.gap(gap, level) if known is None else known

    def learn(self, gap: Gap, level: int, text: str) -> None:
        """Remember the whitespace that stood at a gap; the first gap of a call tells its whole layout."""
        if len(text) > MAX_GAP:
            return
        if gap == "open" and level == 1:
            indent = len(text) - text.rfind("\n") - 1 if "\n" in text else 0
            if indent != self.profile.indent:
                self.profile = Profile(indent=indent)
                self.seen.clear()
        self.seen[gap, level] = text

    def copy(self) -> Style:
        """A style that can learn without changing this one."""
        return Style(self.profile, dict(self.seen), self.ascii_only)

    def render(self, value: Any, level: int = 3) -> str:
        """A JSON value as text; containers inside it are laid out as objects at `level`.

        Raises:
            ValueError: The value is no JSON (NaN, infinity, or an object that JSON does not know).
        """
        if isinstance(value, Mapping):
            return self._container("{", "}", [(str(key), item) for key, item in value.items()], level)
        if isinstance(value, list | tuple):
            return self._container("[", "]", [(None, item) for item in value], level)
        try:
            return json.dumps(value, ensure_ascii=self.ascii_only, allow_nan=False)
        except TypeError as error:
            raise ValueError(str(error)) from None

    def _container(self, opening: str, closing: str, items: list[tuple[str | None, Any]], level: int) -> str:
        if not items:
            return opening + closing
        comma = "," + self.gap("comma", level)
        parts = []
        for key, item in items:
            text = self.render(item, level + 1)
            if key is not None:
                text = json.dumps(key, ensure_ascii=self.ascii_only) + ":" + self.gap("colon", level) + text
            parts.append(text)
        return opening + self.gap("open", level) + comma.join(parts) + self.gap("close", level) + closing
