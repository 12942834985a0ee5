"""Where committed text stands in calls written as Qwen3-Coder's XML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ooospec_agents.drafting.cursor import ARGUMENTS_LEVEL, MAX_CALLS_READ, WHITESPACE, Cursor, ReadCall
from ooospec_agents.formats.qwen_xml import FUNCTION, FUNCTION_END, PARAMETER, PARAMETER_END, xml_value
from ooospec_agents.formats.style import Style

HEAD = re.compile(r"<function=([^<>]*)>")
BEFORE_HEAD = "<tool_call>"
PARAMETER_TAG = re.compile(r"\s*<parameter=([^<>]*)>")
CLOSING_TAG = re.compile(r"\s*</function>")


@dataclass
class XmlCall(ReadCall):
    """A call as far as it was read. `arguments` holds slot and text between the tags."""

    def values(self) -> dict[str, Any]:
        """The arguments as values."""
        return {slot: xml_value(raw) for slot, raw in self.arguments}


class XmlCursor(Cursor):
    """Reads committed text piece by piece. What follows a value's tag is anchored "after".

    Args:
        style: Learns the whitespace between tags, and the words that are met.
    """

    def __init__(self, style: Style) -> None:
        super().__init__(style, bare=True)
        self._sought = 0
        self._trims = bool(style.profile.colon)  # a format without breaks takes all between the tags for the value

    def feed(self, text: str) -> None:
        """Read more committed text."""
        self.text += text
        while self._step():
            pass

    def _step(self) -> bool:
        """Read one tag, or to the end of one value. Returns whether there was one."""
        if self.anchor == "outside":
            return self._open()
        if self.anchor == "value":
            return self._end_value()
        return self._next_tag()

    def _open(self) -> bool:
        head = self._find_head()
        if head is None or len(self.calls) >= MAX_CALLS_READ:
            return False
        before = self.text[self._anchor_at : head.start()]
        if not self.calls:
            tag = before.rfind(BEFORE_HEAD) if before.rstrip(WHITESPACE).endswith(BEFORE_HEAD) else len(before)
            self.first_opening = self.text[self._anchor_at + tag : head.start(1)]
            if before[:tag].strip():
                self._cut("text", self._anchor_at + tag)
        self.calls.append(XmlCall(name=head[1]))
        self._cut("fixed", head.start(1))
        self._cut("name", head.end(1))
        self._enter(ARGUMENTS_LEVEL, head.end())
        return True

    def _find_head(self) -> re.Match[str] | None:
        """The tag of the next function, if it is whole; what was looked through is not looked at again."""
        at = max(self._sought, self._anchor_at)
        while (at := self.text.find(FUNCTION, at)) >= 0:
            self._sought = at
            head = HEAD.match(self.text, at)
            if head is not None or "<" not in self.text[at + 1 :]:
                return head
            at += len(FUNCTION)
        self._sought = max(len(self.text) - len(FUNCTION), 0)
        return None

    def _next_tag(self) -> bool:
        at = self._anchor_at
        tag = PARAMETER_TAG.match(self.text, at)
        closing = CLOSING_TAG.match(self.text, at)
        if tag is not None:
            self._learn("open" if self.first_key else "comma", self.text.index("<", at))
            self._cut("fixed", tag.start(1))
            self._cut("key", tag.end(1), tag[1])
            self.first_key = False
            self.key = tag[1]
            self._move("value", tag.end())
        elif closing is not None:
            self._learn("empty" if self.first_key else "close", self.text.index("<", at))
            self._close(closing.end() - 1)
        elif (begun := self.partial.lstrip(WHITESPACE)) and not _may_become_tag(begun):
            self._abandon(len(self.text) - len(begun))
            return True
        else:
            return False
        return True

    def _end_value(self) -> bool:
        end = self.text.find(PARAMETER_END, self._anchor_at)
        if end < 0:
            return False
        start = self._anchor_at
        key = self.key
        stop = end
        if self._trims:
            start += self.text.startswith("\n", start, end)
            stop -= self.text.endswith("\n", start, end)
        self._learn("colon", start)
        raw = self.text[start:stop]
        self.call.arguments.append((key, raw))
        self.style.learn_value(raw)
        self._cut("fixed", start, key)
        self._cut("value", stop, key)
        self._move("after", end + len(PARAMETER_END))
        return True


def _may_become_tag(begun: str) -> bool:
    if begun.startswith(PARAMETER):
        return "<" not in begun[1:]
    return PARAMETER.startswith(begun) or FUNCTION_END.startswith(begun)
