"""Where committed text stands in calls written as Python."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ooospec_agents.drafting.cursor import ARGUMENTS_LEVEL, MAX_CALLS_READ, WHITESPACE, Cursor, ReadCall
from ooospec_agents.formats.pythonic import QUOTES, python_value
from ooospec_agents.formats.style import Style

NAME = re.compile(r"[^\W\d][\w.-]*\Z")
MARKS = ("[", "<function_calls>")
MAX_HEAD = 256
"""Characters before a parenthesis in which a name and its opening are looked for."""
STRING_MARKS = {quote: re.compile(rf"[{quote}\\]") for quote in QUOTES}
"""What alone matters inside a string, by its quotes."""


@dataclass
class PythonCall(ReadCall):
    """A call as far as it was read. `arguments` holds slot and raw Python literal."""

    def values(self) -> dict[str, Any]:
        """The arguments as values; a value that is no literal is left out."""
        out: dict[str, Any] = {}
        for slot, raw in self.arguments:
            try:
                out[slot] = python_value(raw)
            except (ValueError, RecursionError):
                continue
        return out


class PythonCursor(Cursor):
    """Reads committed text piece by piece.

    Args:
        style: Learns the whitespace, quotes and words that are met.
        separators: Characters that may stand between calls, besides whitespace.
    """

    opener = "("

    def __init__(self, style: Style, *, separators: str = ",") -> None:
        super().__init__(style, bare=True, separators=separators)
        self._quote = ""

    def _maybe_open(self, at: int) -> None:
        before = self.text[max(self._anchor_at, at - MAX_HEAD) : at]
        name = NAME.search(before)
        if name is None or len(self.calls) >= MAX_CALLS_READ:
            return
        head = before[: name.start()]
        solid = head.rstrip(WHITESPACE)
        if not (solid.endswith(MARKS) or (self.calls and not solid.strip(self._between))):
            return
        start = at - len(name[0])
        if not self.calls:
            self.first_opening = head[_opening_at(solid) :]
            if len(head) > len(self.first_opening):
                self._cut("text", start - len(self.first_opening))
        self.calls.append(PythonCall(name=name[0]))
        self._cut("fixed", start)
        self._cut("name", at)
        self._enter(ARGUMENTS_LEVEL, at + 1)

    def _read_key(self, char: str, at: int) -> None:
        if self._start >= 0:
            if char == "=":
                self.key = self.text[self._start : at].rstrip(WHITESPACE)
                self._cut("fixed", self._start)
                self._cut("key", self._start + len(self.key), self.key)
                self.first_key = False
                self._move("value", at + 1)
            elif not (char.isalnum() or char in "_-" or char in WHITESPACE):
                self._abandon(at)
        elif char in WHITESPACE:
            return
        elif char == ")":
            self._learn("empty" if self.first_key else "close", at)
            self._close(at)
        elif char.isalpha() or char == "_":
            self._learn("open" if self.first_key else "comma", at)
            self._start = at
        else:
            self._abandon(at)

    def _read_value(self, char: str, at: int) -> None:
        if self._start < 0:
            if char in WHITESPACE:
                return
            self._learn("colon", at)
            if char in "]}),:=":
                self._abandon(at)
                return
            self._start = at
        if self._in_string:
            self._read_string(char, at)
        elif char in QUOTES:
            self._quote, self._in_string = char, True
            self._string_mark = STRING_MARKS[char]
        elif char in "[{(":
            self._depth += 1
        elif char in "]})" and self._depth:
            self._depth -= 1
            if not self._depth:
                self._finish_value(at + 1)
        elif not self._depth and (char in ",)" or char in WHITESPACE):
            self._finish_value(at)
            self._read_after(char, at)

    def _read_string(self, char: str, at: int) -> None:
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == self._quote:
            self._in_string = False
            if not self._depth:
                self._finish_value(at + 1)

    def _read_after(self, char: str, at: int) -> None:
        if char in WHITESPACE:
            return
        if char == ",":
            self._move("key", at + 1)
        elif char == ")":
            self._learn("close", at)
            self._close(at)
        else:
            self._abandon(at)


def _opening_at(solid: str) -> int:
    """Where the opening begins at the end of a text: its special token or tag, if it has one, counts to it."""
    bracket = len(solid) - solid.endswith("[")
    tag = solid[:bracket].rstrip(WHITESPACE)
    return tag.rfind("<") if tag.endswith(">") and "<" in tag else bracket
