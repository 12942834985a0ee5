"""Whitespace and value habits of JSON as one target writes it, and values rendered in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Literal

Gap = Literal["open", "colon", "comma", "close", "empty"]
"""Where whitespace may stand: after `{`, after `:`, after `,`, before `}`, and between the braces of `{}`."""

VALUE_LEVEL = 3
"""Level of an object that is an argument's value."""
MAX_LEVEL = VALUE_LEVEL + 20
"""Deepest level that is written: laying out a value takes long where it is nested deep."""
COMMON_INDENTS = (4, 2)
SHORT = 60
"""Characters up to which a list inside an indented layout stands on one line, as most models write it."""
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

    def style(self) -> Style:
        """A style that knows this layout and nothing else yet."""
        return Style(self)


LITERALS = {None: "null", True: "true", False: "false"}
FLAT = Profile()
INDENTED = Profile(indent=2)


@dataclass
class Style:
    """How one target lays out a call: a profile, and each gap as it was last seen."""

    profile: Profile = FLAT
    seen: dict[tuple[Gap, int], str] = field(default_factory=dict)
    ascii_only: bool = False
    lists: bool | None = None
    """Whether lists of an indented layout are indented too; None until one was seen."""

    def gap(self, gap: Gap, level: int) -> str:
        """The whitespace expected at a gap."""
        known = self.seen.get((gap, level))
        if known is not None:
            return known
        if gap in ("colon", "empty"):
            return self.profile.gap(gap, level)
        inside = self._indent(level)
        if inside is None:
            return self.profile.comma if gap == "comma" else ""
        outside = (self._indent(level - 1) or 0) if level > 1 else 0
        return "\n" + " " * (outside if gap == "close" else inside)

    def _indent(self, level: int) -> int | None:
        """Indentation of what stands in an object at `level`; None where it stands on the brace's own line."""
        # From the outside in: asked of the levels around it anew, a deeply nested value would take forever.
        before: int | None = None
        inside: int | None = None
        for here in range(1, level + 1):
            outer = inside
            opening = self.seen.get(("open", here))
            if opening is not None:
                inside = len(opening) - opening.rfind("\n") - 1 if "\n" in opening else None
            elif here <= 2:
                inside = self.profile.indent * here or None
            elif outer is not None:
                inside = outer + (outer - (before or 0) or self.profile.indent)
            before = outer
        return inside

    def indented(self, level: int, begun: str) -> str:
        """The opening gap of an object at `level` that begins as `begun`: a common indentation, else `begun` itself."""
        outer = (self._indent(level - 1) or 0) if level > 1 else 0
        candidates = ("\n" + " " * (outer + step) for step in COMMON_INDENTS)
        return next((text for text in candidates if begun and text.startswith(begun)), begun)

    def learn(self, gap: Gap, level: int, text: str) -> None:
        """Remember the whitespace that stood at a gap.

        The first gap of a call tells its whole layout, the first of its arguments theirs.
        """
        if len(text) > MAX_GAP:
            return
        if gap == "open" and text != self.gap(gap, level):
            if level == 1:
                self.profile = Profile(indent=len(text) - text.rfind("\n") - 1 if "\n" in text else 0)
            for known in [known for known in self.seen if known[1] >= level and known[0] != "colon"]:
                del self.seen[known]
        self.seen[gap, level] = text

    def learn_value(self, raw: str) -> None:
        """Remember how a value that was written lays out its lists."""
        if raw.startswith("[") and raw[1:2] not in ("", "]"):
            self.lists = raw[1].isspace()

    def copy(self) -> Style:
        """A style that can learn without changing this one."""
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__, seen=dict(self.seen))
        return copied

    def nested(self) -> Style:
        """The style of what stands inside a value."""
        return self

    def render(self, value: Any, level: int = VALUE_LEVEL) -> str:
        """A JSON value as text; containers inside it are laid out as objects at `level`.

        Raises:
            ValueError: The value is no JSON (NaN, infinity, or an object that JSON does not know), or nested too deep.
        """
        if type(value) is str:  # asked first: it is the commonest, and whether it is a Mapping takes long to tell
            return self.string(value)
        if level > MAX_LEVEL:
            msg = f"a value nested deeper than {MAX_LEVEL - VALUE_LEVEL} is not written"
            raise ValueError(msg)
        if isinstance(value, Mapping):
            return self._container("{", "}", [(str(key), item) for key, item in value.items()], level)
        if isinstance(value, list | tuple):
            items: list[tuple[str | None, Any]] = [(None, item) for item in value]
            if self._indent(level) is not None and self.lists is not True:
                short = replace(self, profile=FLAT, seen={}, lists=None)._container("[", "]", items, level)
                if self.lists is False or len(short) <= SHORT:
                    return short
            return self._container("[", "]", items, level)
        if isinstance(value, str):
            return self.string(value)
        if value is None or value is True or value is False:
            return LITERALS[value]
        if type(value) is int:
            return repr(value)
        try:
            return json.dumps(value, ensure_ascii=self.ascii_only, allow_nan=False)
        except TypeError as error:
            raise ValueError(str(error)) from None

    def string(self, text: str) -> str:
        """A string as a literal."""
        return quoted(text, self.ascii_only)

    def _container(self, opening: str, closing: str, items: list[tuple[str | None, Any]], level: int) -> str:
        if not items:
            return opening + closing
        comma = "," + self.gap("comma", level)
        parts = []
        for key, item in items:
            text = self.render(item, level + 1)
            if key is not None:
                text = self.string(key) + ":" + self.gap("colon", level) + text
            parts.append(text)
        return opening + self.gap("open", level) + comma.join(parts) + self.gap("close", level) + closing


def quoted(text: str, ascii_only: bool = False) -> str:
    """A string as a JSON literal: what `json.dumps` writes, without making an encoder for each."""
    return encode_basestring_ascii(text) if ascii_only else encode_basestring(text)


def unescape(text: str) -> str:
    """The string of a JSON literal without its quotes; the text itself where it is none."""
    if "\\" not in text and '"' not in text:
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text
