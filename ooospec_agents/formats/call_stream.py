"""Finds tool calls in a text while it is being written: fenced JSON, bare JSON and `<tool_call>` markup."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Generator

from ooospec_agents.formats.call_events import Arguments, CallStart, Event, Text, joined
from ooospec_agents.formats.char_reader import (
    BLANK,
    BRACKETS,
    END,
    FENCE,
    CharReader,
    FenceEnd,
    JsonEnd,
    Verdict,
)

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_JSON_FENCES = frozenset({"", "json", "tool_call", "tool_calls"})


class CallStream(CharReader):
    """Reads text in pieces of any size and says what it is made of.

    A JSON object is a call if its "name" is bound and its "arguments" (or "parameters") are an object, JSON
    text of one, or null. Inside `<tool_call>` markup any name and any arguments count, since the markup itself
    says that a call is meant. All else is text, except blank space next to calls. Every decision depends on
    the characters alone, never on where pieces end.

    Args:
        names: The functions bound to the request. Without any, all text is text.
    """

    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self._names = frozenset(names)
        self._events: list[Event] = []
        self._blank = ""
        self._calls = 0
        self._line_start = True
        self._quiet: JsonEnd | FenceEnd | None = None  # inside JSON or a code block that holds no call
        self._machine = self._read()
        next(self._machine)

    def feed(self, text: str) -> list[Event]:
        """Read the next piece. Returns what is certain by now, in order, neighbouring pieces joined."""
        if not self._names:
            return [Text(text)] if text else []
        for char in text:
            self._machine.send(char)
        return self._take()

    def finish(self) -> list[Event]:
        """The text is over. Returns what had been held back: text only, never a call or arguments."""
        if self._names and not self._over:
            with contextlib.suppress(StopIteration):
                self._machine.send(END)
            if self._blank and not self._calls:
                self._events.append(Text(self._blank))
        return self._take()

    def _take(self) -> list[Event]:
        events, self._events = joined(self._events), []
        return events

    # Readers that are sent one character at a time. Each leaves the rest of the text to the next.

    def _read(self) -> Generator[None, str, None]:
        while char := (yield from self._next()):
            if char == "<":
                tag = yield from self._tag(_OPEN, _CLOSE)
                if tag == _OPEN:
                    yield from self._markup()
                elif tag != _CLOSE or not self._calls:  # a lone closing tag after a call is the call's
                    self._say(tag)
            elif self._quiet is None and self._line_start and char == "`":
                yield from self._fence()
            elif self._quiet is None and self._line_start and char in BRACKETS:
                self._held = [char]
                if not (yield from self._calls_at(char, any_name=False)):
                    self._give_up(1, JsonEnd() if '"' in self._held else None)
            else:
                self._say(char)

    def _fence(self) -> Generator[None, str, None]:
        """A code block, first backtick read."""
        self._held = ["`"]
        while (char := (yield from self._next())) == "`":
            pass
        if not "".join(self._held).startswith(FENCE):
            self._give_up(1)
            return
        info = ""
        while char not in ("\n", END) and char not in BRACKETS:
            info += char
            char = yield from self._next()
        if info.strip().lower() in _JSON_FENCES:
            if char == "\n":
                char = yield from self._solid()
            if char in BRACKETS and (yield from self._calls_at(char, any_name=False)):
                yield from self._rest_of_fence()
                return
        self._give_up(len(FENCE), FenceEnd())

    def _rest_of_fence(self) -> Generator[None, str, None]:
        while char := (yield from self._solid()):
            if char in BRACKETS:
                self._held = [char]
                if not (yield from self._calls_at(char, any_name=False)):
                    self._give_up(1, FenceEnd())
                    return
            elif char == "`":
                while (char := (yield from self._next())) == "`":
                    pass
                self._push_back(char if char in BLANK else FENCE + char)  # "```json" opens another block
                return
            elif char != ",":
                self._push_back(char)
                self._quiet = FenceEnd()
                return

    def _markup(self) -> Generator[None, str, None]:
        """`<tool_call>` was read."""
        self._held = list(_OPEN)
        char = yield from self._solid()
        if char not in BRACKETS or not (yield from self._calls_at(char, any_name=True)):
            self._give_up(len(_OPEN), self._quiet)
            return
        self._quiet = None
        while char := (yield from self._solid()):
            if char in BRACKETS:
                self._held = [char]
                if not (yield from self._calls_at(char, any_name=True)):
                    self._give_up(1)
                    return
            elif char not in ("}", ","):
                self._push_back(char)
                return

    def _calls_at(self, char: str, *, any_name: bool) -> Verdict:
        """An object or a list of objects, its first bracket held. True: at least one was a call."""
        if char == "{":
            return (yield from self._call(any_name=any_name))
        if (yield from self._solid()) != "{" or not (yield from self._call(any_name=any_name)):
            return False
        while (char := (yield from self._solid())) and char != "]":
            if char == "{":
                self._held = [char]
                if not (yield from self._call(any_name=any_name)):
                    self._give_up(1)
            elif char != ",":
                self._push_back(char)
                break
        return True

    def _call(self, *, any_name: bool) -> Verdict:
        """An object, its brace held. False: no call, and what was read is still held."""
        name: str | None = None
        arguments: str | None = None
        while (char := (yield from self._solid())) != "}":
            key = (yield from self._string()) if char == '"' else None
            if key is None or (yield from self._solid()) != ":":
                return False
            char = yield from self._solid()
            if key == "name" and char == '"':
                name = yield from self._string()
                if not name or not (any_name or name in self._names):
                    return False
            elif key in ("arguments", "parameters") and name and char == "{":
                self._start(name)
                yield from self._bracketed(char, self._add_arguments)
                yield from self._rest_of_call()
                return True
            elif key in ("arguments", "parameters"):
                arguments = yield from self._arguments(char, any_value=any_name)
                if arguments is None:
                    return False
            else:
                return False
            char = yield from self._solid()
            if char == "}":
                break
            if char != ",":
                return False
        if not name or (arguments is None and not any_name):
            return False
        self._start(name)
        self._add_arguments(arguments or "{}")
        return True

    def _rest_of_call(self) -> Generator[None, str, None]:
        """What follows the arguments inside a call's object, its closing brace included. Dropped."""
        char = yield from self._solid()
        if char == ",":
            rest = JsonEnd()
            rest.feed("{")
            while not rest.done and (char := (yield from self._next())):
                rest.feed(char)
        elif char != "}":  # the model forgot the brace
            self._push_back(char)

    def _arguments(self, char: str, *, any_value: bool) -> Generator[None, str, str | None]:
        """Arguments that cannot be passed on while they are read; None: these are no arguments."""
        if char in BRACKETS:
            pieces: list[str] = []
            complete = yield from self._bracketed(char, pieces.append)
            return "".join(pieces) if complete and (any_value or char == "{") else None
        if char == '"':
            text = yield from self._string()
            if text is None or _kind(text) is dict or not any_value:
                return text if text is not None and _kind(text) is dict else None
            return json.dumps(text, ensure_ascii=False)
        word = ""
        while char and char not in BLANK and char not in ",}":
            word += char
            char = yield from self._next()
        self._push_back(char)
        if self._held:
            self._held.pop()
        if word == "null":
            return "{}"
        return word if any_value and _kind(word) is not None else None

    def _give_up(self, keep: int, quiet: JsonEnd | FenceEnd | None = None) -> None:
        """What is held is no call: its first `keep` characters are text, the rest is read again."""
        held = "".join(self._held or ())
        self._held, self._quiet = None, quiet
        self._say(held[:keep])
        self._push_back(held[keep:])

    def _start(self, name: str) -> None:
        self._held, self._blank, self._line_start = None, "", True
        self._events.append(CallStart(self._calls, name))
        self._calls += 1

    def _add_arguments(self, piece: str) -> None:
        self._events.append(Arguments(self._calls - 1, piece))

    def _say(self, text: str) -> None:
        for char in text:
            self._line_start = char == "\n" or (self._line_start and char in BLANK)
            if self._quiet is not None:
                self._quiet.feed(char)
                if self._quiet.done:
                    self._quiet = None
        text = self._blank + text
        solid = text.rstrip(BLANK)
        self._blank = text[len(solid) :]
        if solid:
            self._events.append(Text(solid))


def _kind(text: str) -> type | None:
    """The type of a JSON text's value; None: it is not JSON."""
    try:
        return type(json.loads(text))
    except (ValueError, RecursionError):
        return None
