"""Calls written as Python: `[f(a=1, b="x")]`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ooospec_agents.formats.name_first import NameFirst
from ooospec_agents.formats.style import VALUE_LEVEL, Gap, Profile, Style, quoted
from ooospec_agents.formats.wire import Segment

QUOTES = "\"'"
TO_JSON = {"True": "true", "False": "false", "None": "null"}
FROM_JSON = {word: python for python, word in TO_JSON.items()}
TOKEN_TO_JSON = {"(": "[", ")": "]", **TO_JSON}
TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|.", re.DOTALL)
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)|\"", re.DOTALL)


@dataclass
class PythonStyle(Style):
    """How one target lays out Python calls.

    Attributes:
        quote: The mark around strings.
        python_words: True, False and None, not JSON's words.
    """

    quote: str = '"'
    python_words: bool = True

    def gap(self, gap: Gap, level: int) -> str:
        """The whitespace expected at a gap; none stands around the `=` of an argument."""
        if gap == "colon" and level < VALUE_LEVEL:
            return self.seen.get((gap, level), "")
        return super().gap(gap, level)

    def string(self, text: str) -> str:
        """A string as a Python literal, in the other quotes where these would need an escape."""
        if self.quote == '"' or ("'" in text and '"' not in text):
            return quoted(text)
        return "'" + quoted(text)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"

    def render(self, value: Any, level: int = VALUE_LEVEL) -> str:
        """A value as a Python literal.

        Raises:
            ValueError: The value is no JSON.
        """
        text = super().render(value, level)
        return FROM_JSON.get(text, text) if self.python_words else text

    def learn_value(self, raw: str) -> None:
        """Remember the quotes, the words and the layout of lists of a value that was written."""
        super().learn_value(raw)
        if raw[:1] in ("'", '"') and not any(mark in raw[1:-1] for mark in QUOTES):
            self.quote = raw[0]
        elif raw in TO_JSON or raw in FROM_JSON:
            self.python_words = raw in TO_JSON


class PythonProfile(Profile):
    """The layout of a call in Python."""

    def style(self) -> PythonStyle:
        """A style that knows this layout and nothing else yet."""
        return PythonStyle(self)


PYTHON = PythonProfile()


@dataclass(frozen=True)
class Pythonic(NameFirst):
    """A function call in Python, with named arguments."""

    after_name: str = "("
    profile: Profile = PYTHON
    separators: str = ","

    def _call(self, index: int, name: str, arguments: Mapping[str, Any], style: Style) -> list[Segment]:
        out = [Segment("name", name, index)]
        before = "(" + style.gap("open" if arguments else "empty", 2)
        for slot, value in arguments.items():
            out.append(Segment("fixed", before, index))
            out.append(Segment("key", slot, index, slot))
            out.append(Segment("fixed", "=" + style.gap("colon", 2), index, slot))
            out.append(Segment("value", style.render(value), index, slot))
            before = "," + style.gap("comma", 2)
        return [*out, Segment("end", style.gap("close", 2) + ")" if arguments else before + ")", index)]


PYTHONIC = Pythonic("pythonic", "[", ", ", "]", openings=("<|python_start|>[",))
LFM2 = Pythonic("lfm2", "<|tool_call_start|>[", ", ", "]<|tool_call_end|>")
OLMO3 = Pythonic("olmo3", "<function_calls>", "\n", "</function_calls>", openings=("<function_calls>\n",))


def python_value(raw: str) -> Any:
    """What a Python literal means, tuples as lists.

    Raises:
        ValueError: It is no literal that JSON could hold.
    """
    return json.loads("".join(map(_json_token, TOKEN.findall(raw))), strict=False)


def _json_token(token: str) -> str:
    if token[0] in QUOTES and len(token) > 1:
        return '"' + ESCAPE.sub(_json_escape, token[1:-1]) + '"'
    return TOKEN_TO_JSON.get(token, token)


def _json_escape(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped is None:
        return '\\"'
    if escaped[0] == "x" and len(escaped) == 3:
        return "\\u00" + escaped[1:]
    if escaped == "'":
        return "'"
    return found[0] if escaped in '"\\bfnrtu' else "\\\\" + escaped
