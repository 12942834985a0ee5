"""Where committed text stands in a call: an incremental reader of the JSON family of wire formats."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from ooospec_agents.formats.style import Gap, Style
from ooospec_agents.formats.wire import Kind, Segment

Anchor = Literal["outside", "key", "value", "after"]
"""The last point of structure passed: outside any call; after `{` or `,`; after `:`; after a value."""

WHITESPACE = " \t\r\n"
CALL_LEVEL, ARGUMENTS_LEVEL = 1, 2
OPENING_MARKS = ("<tool_call>", "```json", "```")
MAX_CALLS_READ = 256
STRING_MARK = re.compile(r'["\\]')
"""What alone matters inside a string."""


@dataclass
class ReadCall:
    """A call as far as it was read. `arguments` holds slot and raw JSON text, in the order written."""

    name: str = ""
    arguments: list[tuple[str, str]] = field(default_factory=list)
    arguments_key: str = ""
    complete: bool = False

    def values(self) -> dict[str, Any]:
        """The arguments as values; a value that is no JSON is left out."""
        out: dict[str, Any] = {}
        for slot, raw in self.arguments:
            try:
                out[slot] = json.loads(raw)
            except ValueError:
                continue
        return out


class Cursor:
    """Reads committed text piece by piece; however it is cut, the result is that of reading it whole.

    Args:
        style: Learns the whitespace that is met.
        bare: The text is an arguments object alone, of the function `named`.
        named: The function's name where the text does not tell it.
        marks: What ends text that a call may follow.
        separators: Characters that may stand between calls, besides whitespace.
    """

    opener = "{"
    """The character that may open a call."""

    def __init__(
        self,
        style: Style,
        *,
        bare: bool = False,
        named: str = "",
        marks: tuple[str, ...] = OPENING_MARKS,
        separators: str = "[,",
    ) -> None:
        self.style = style
        self.calls: list[ReadCall] = []
        self.segments: list[Segment] = []
        self.text = ""
        self.anchor: Anchor = "outside"
        self.level = 0
        self.first_key = True
        self.key = ""
        self.first_opening = ""
        self.broken = False
        self._bare, self._named = bare, named
        self._marks, self._between = marks, WHITESPACE + separators
        self._string_mark = STRING_MARK
        self._anchor_at = 0
        self._segment_at = 0
        self._start = -1
        self._in_string = self._escaped = False
        self._depth = 0
        self._keyed = False

    @property
    def partial(self) -> str:
        """Text committed since the anchor."""
        return self.text[self._anchor_at :]

    @property
    def call(self) -> ReadCall:
        """The call being read, or the last one."""
        return self.calls[-1] if self.calls else ReadCall()

    @property
    def inside(self) -> bool:
        """Whether the text ends inside a call."""
        return self.anchor != "outside"

    def feed(self, text: str) -> None:
        """Read more committed text."""
        at = len(self.text)
        self.text += text
        end = len(self.text)
        while at < end:
            if self._in_string and not self._escaped:
                found = self._string_mark.search(self.text, at)
                if found is None:
                    return
                at = found.start()
            elif self.anchor == "outside":
                at = self.text.find(self.opener, at)
                if at < 0:
                    return
            self._read(self.text[at], at)
            at += 1

    def all_segments(self) -> list[Segment]:
        """What was read, as segments; the rest that is still open comes last. Their texts joined are the text."""
        rest = self.text[self._segment_at :]
        if not rest:
            return list(self.segments)
        kind: Kind = "text"
        if self.inside or not rest.strip(WHITESPACE):
            kind = "fixed"
        elif self.calls:
            kind = "end"
        return [
            *self.segments,
            Segment(kind, rest, max(len(self.calls) - 1, 0), self.key if self.inside else ""),
        ]

    def _read(self, char: str, at: int) -> None:
        if self.anchor == "outside":
            if char == self.opener:
                self._maybe_open(at)
        elif self.anchor == "key":
            self._read_key(char, at)
        elif self.anchor == "value":
            self._read_value(char, at)
        else:
            self._read_after(char, at)

    def _maybe_open(self, at: int) -> None:
        before = self.text[self._anchor_at : at]
        bare = before.strip(self._between)
        if len(self.calls) >= MAX_CALLS_READ or (bare and not bare.endswith(self._marks)):
            return
        if not self.calls:
            # Of text before a call only its mark is an opening: the text is another one each time.
            self.first_opening = before[max(before.rfind(mark) for mark in self._marks) :] if bare else before
        self.calls.append(ReadCall(name=self._named if self._bare else ""))
        self._cut("text" if bare and not bare.startswith(self._marks) else "fixed", at)
        self._enter(ARGUMENTS_LEVEL if self._bare else CALL_LEVEL, at + 1)

    def _enter(self, level: int, at: int) -> None:
        self.level, self.first_key = level, True
        self._move("key", at)

    def _move(self, anchor: Anchor, at: int) -> None:
        self.anchor, self._anchor_at, self._start = anchor, at, -1
        self._in_string = self._escaped = self._keyed = False
        self._depth = 0
        if anchor == "key":
            self.key = ""

    def _cut(self, kind: Kind, end: int, slot: str = "") -> None:
        if end > self._segment_at:
            self.segments.append(Segment(kind, self.text[self._segment_at : end], max(len(self.calls) - 1, 0), slot))
            self._segment_at = end

    def _learn(self, gap: Gap, end: int) -> None:
        self.style.learn(gap, self.level, self.text[self._anchor_at : end])

    def _read_key(self, char: str, at: int) -> None:
        if self._in_string:
            if self._escaped:
                self._escaped = False
            elif char == "\\":
                self._escaped = True
            elif char == '"':
                self._in_string = False
                self.key = _unquote(self.text[self._start : at + 1])
                self._keyed = True
                if self.level == ARGUMENTS_LEVEL:
                    self._cut("fixed", self._start)
                    self._cut("key", at + 1, self.key)
        elif char in WHITESPACE:
            return
        elif char == '"' and not self._keyed:
            self._learn("open" if self.first_key else "comma", at)
            self._start, self._in_string = at, True
        elif char == ":" and self._keyed:
            self.first_key = False
            self._move("value", at + 1)
        elif char == "}" and not self._keyed and self.first_key:
            self._learn("empty", at)
            self._close(at)
        else:
            self._abandon(at)

    def _read_value(self, char: str, at: int) -> None:
        if self._start < 0:
            if char in WHITESPACE:
                return
            self._learn("colon", at)
            if char == "{" and self.level == CALL_LEVEL and self.key in ("arguments", "parameters"):
                self.call.arguments_key = self.key
                self._enter(ARGUMENTS_LEVEL, at + 1)
                return
            if char in "]}:,":
                self._abandon(at)
                return
            self._start = at
        if self._in_string:
            if self._escaped:
                self._escaped = False
            elif char == "\\":
                self._escaped = True
            elif char == '"':
                self._in_string = False
                if not self._depth:
                    self._finish_value(at + 1)
        elif char == '"':
            self._in_string = True
        elif char in "[{":
            self._depth += 1
        elif char in "]}" and self._depth:
            self._depth -= 1
            if not self._depth:
                self._finish_value(at + 1)
        elif not self._depth and (char in ",}" or char in WHITESPACE):
            self._finish_value(at)
            self._read_after(char, at)

    def _finish_value(self, end: int) -> None:
        raw = self.text[self._start : end]
        if self.level == ARGUMENTS_LEVEL:
            self.call.arguments.append((self.key, raw))
            self.style.learn_value(raw)
            self._cut("fixed", self._start, self.key)
            self._cut("value", end, self.key)
        elif self.key == "name":
            self.call.name = _unquote(raw)
            self._cut("fixed", self._start)
            self._cut("name", end)
        self._move("after", end)

    def _read_after(self, char: str, at: int) -> None:
        if char in WHITESPACE:
            return
        if char == ",":
            self._move("key", at + 1)
        elif char == "}":
            self._learn("close", at)
            self._close(at)
        else:
            self._abandon(at)

    def _close(self, at: int) -> None:
        if self.level == ARGUMENTS_LEVEL and not self._bare:
            self.level, self.first_key, self.key = CALL_LEVEL, False, ""
            self._move("after", at + 1)
            return
        self.call.complete = True
        self._cut("end", at + 1)
        self._leave(at + 1)

    def _leave(self, at: int) -> None:
        self.level, self.key = 0, ""
        self._move("outside", at)

    def _abandon(self, at: int) -> None:
        # Not JSON after all: what follows is read as text until another call opens.
        self._leave(at)
        self.broken = True


def _unquote(raw: str) -> str:
    if len(raw) > 1 and raw[0] == raw[-1] == '"' and "\\" not in raw:
        return raw[1:-1]
    try:
        value = json.loads(raw)
    except ValueError:
        return raw.strip('"')
    return value if isinstance(value, str) else raw
