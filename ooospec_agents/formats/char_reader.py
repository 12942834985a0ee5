"""Reads text one character at a time with generators that wait for the next: what `call_stream` stands on."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator

BLANK = " \t\r\n"
BRACKETS = frozenset("{[")
FENCE = "```"
END = ""
"""What a reader gets once the text is over."""

Reader = Generator[None, str, str]
Verdict = Generator[None, str, bool]


class JsonEnd:
    """Follows brackets and strings of JSON text; `done` once the outermost bracket is closed."""

    def __init__(self) -> None:
        self.in_string = False
        self.done = False
        self._depth = 0
        self._escaped = False

    def feed(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif self.in_string:
            self._escaped = char == "\\"
            self.in_string = char != '"'
        elif char == '"':
            self.in_string = True
        elif char in BRACKETS:
            self._depth += 1
        elif char in ("}", "]"):
            self._depth -= 1
            self.done = self._depth <= 0


class FenceEnd:
    """Waits for the line of backticks that closes a code block."""

    def __init__(self) -> None:
        self.done = False
        self._line = "opening line"

    def feed(self, char: str) -> None:
        if char == "\n":
            self._line = ""
        elif len(self._line) < 8:
            self._line += char
            self.done = self._line.lstrip(" ") == FENCE


class CharReader:
    """The readers of small things. Text that may still turn out to be something else is held meanwhile."""

    def __init__(self) -> None:
        self._unread: deque[str] = deque()
        self._held: list[str] | None = None  # None: nothing is held
        self._over = False

    def _next(self) -> Reader:
        if self._unread:
            char = self._unread.popleft()
        elif self._over:
            char = END
        else:
            char = yield
            self._over = char == END
        if self._held is not None:
            self._held.append(char)
        return char

    def _push_back(self, text: str) -> None:
        self._unread.extendleft(reversed(text))

    def _bracketed(self, char: str, emit: Callable[[str], None]) -> Verdict:
        """An object or a list, its first bracket, `char`, read. True: it was complete."""
        end = JsonEnd()
        while True:
            emit(json.dumps(char)[1:-1] if end.in_string and char < " " else char)
            end.feed(char)
            if end.done:
                return True
            if not (char := (yield from self._next())):
                return False

    def _string(self) -> Generator[None, str, str | None]:
        """A JSON string, its first quote read; None: it is none."""
        text, escaped = '"', False
        while char := (yield from self._next()):
            text += char
            if char == '"' and not escaped:
                try:
                    return str(json.loads(text, strict=False))
                except ValueError:
                    return None
            escaped = char == "\\" and not escaped
        return None

    def _tag(self, *tags: str) -> Reader:
        """The one of `tags` that begins here, "<" read; or as much as looked like one."""
        text = "<"
        while text not in tags:
            char = yield from self._next()
            if not char or not any(tag.startswith(text + char) for tag in tags):
                self._push_back(char)
                break
            text += char
        return text

    def _solid(self) -> Reader:
        """The next character that is no blank."""
        while (char := (yield from self._next())) and char in BLANK:
            pass
        return char
