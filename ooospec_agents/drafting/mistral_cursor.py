"""Where committed text stands in Mistral's calls: a name and an object, or a list of objects."""

from __future__ import annotations

import re

from ooospec_agents.drafting.cursor import ARGUMENTS_LEVEL, MAX_CALLS_READ, OPENING_MARKS, Cursor, ReadCall
from ooospec_agents.formats.mistral import CALLS_MARK
from ooospec_agents.formats.style import Style

HEAD = re.compile(r"\[TOOL_CALLS\]\s*([^\s\[\]{}]+)\s*(?:\[CALL_ID\][^\[{]*)?(?:\[ARGS\])?\s*")


class MistralCursor(Cursor):
    """Reads both forms, whichever the target writes.

    Args:
        style: Learns the whitespace that is met.
    """

    def __init__(self, style: Style) -> None:
        # Stripped of brackets, the mark has lost its own.
        super().__init__(style, marks=(*OPENING_MARKS, CALLS_MARK[1:]))

    def _maybe_open(self, at: int) -> None:
        before = self.text[self._anchor_at : at]
        mark = before.rfind(CALLS_MARK)
        head = HEAD.fullmatch(before, mark) if mark >= 0 else None
        if head is not None and len(self.calls) < MAX_CALLS_READ:
            self._open_named(head, at)
            return
        opened = len(self.calls)
        self._bare = False
        super()._maybe_open(at)
        if mark >= 0 and not opened and self.calls:
            self.first_opening = before[mark:]

    def _open_named(self, head: re.Match[str], at: int) -> None:
        anchor = self._anchor_at
        if not self.calls:
            self.first_opening = head.string[head.start() : head.start(1)]
        if head.string[: head.start()].strip():
            self._cut("text", anchor + head.start())
        self.calls.append(ReadCall(name=head[1]))
        self._cut("fixed", anchor + head.start(1))
        self._cut("name", anchor + head.end(1))
        self._bare = True
        self._enter(ARGUMENTS_LEVEL, at + 1)

    @property
    def listed(self) -> bool | None:
        """Whether the target writes a list of objects; None where its text does not tell yet."""
        _, mark, rest = self.text.partition(CALLS_MARK)
        rest = rest.lstrip()
        return rest.startswith("[") if mark and rest else None
