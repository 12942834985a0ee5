"""Calls in the XML of Qwen3-Coder: a tag for each parameter, strings in it as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ooospec_agents.formats.name_first import NameFirst
from ooospec_agents.formats.pythonic import FROM_JSON, TO_JSON
from ooospec_agents.formats.style import FLAT, VALUE_LEVEL, Gap, Profile, Style
from ooospec_agents.formats.wire import Segment

PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
FUNCTION, FUNCTION_END = "<function=", "</function>"


@dataclass
class XmlStyle(Style):
    """How one target lays out XML calls. The gap after a colon is the line break around a value.

    Attributes:
        python_words: True, False and None, not JSON's words.
    """

    python_words: bool = False

    def gap(self, gap: Gap, level: int) -> str:
        """The whitespace expected between tags, or inside a value that is JSON."""
        return (
            self.nested().gap(gap, level) if level >= VALUE_LEVEL else self.seen.get((gap, level), self.profile.colon)
        )

    def _indent(self, level: int) -> int | None:
        return super()._indent(level) if level >= VALUE_LEVEL else None

    def render(self, value: Any, level: int = VALUE_LEVEL) -> str:
        """A value as it stands between its tags: a string as it is, all else as JSON.

        Raises:
            ValueError: The value is no JSON.
        """
        if level > VALUE_LEVEL:
            return super().render(value, level)
        text = value if isinstance(value, str) else super().render(value, level)
        return FROM_JSON.get(text, text) if self.python_words and not isinstance(value, str) else text

    def learn_value(self, raw: str) -> None:
        """Remember the words and the layout of lists of a value that was written."""
        super().learn_value(raw)
        if raw in TO_JSON or raw in FROM_JSON:
            self.python_words = raw in TO_JSON

    def nested(self) -> Style:
        """The style of JSON inside a value."""
        return Style(FLAT, {key: text for key, text in self.seen.items() if key[1] >= VALUE_LEVEL}, lists=self.lists)


class XmlProfile(Profile):
    """The layout of a call in XML: `colon` is the break between tags."""

    def style(self) -> XmlStyle:
        """A style that knows this layout and nothing else yet."""
        return XmlStyle(self)


LINES, COMPACT = XmlProfile(colon="\n"), XmlProfile(colon="")


@dataclass(frozen=True)
class QwenXml(NameFirst):
    """A function's tag with a tag for each of its parameters."""

    after_name: str = ">"
    profile: Profile = LINES

    def _call(self, index: int, name: str, arguments: Mapping[str, Any], style: Style) -> list[Segment]:
        out = [Segment("name", name, index)]
        before = ">" + style.gap("open" if arguments else "empty", 2)
        around = style.gap("colon", 2)
        for slot, value in arguments.items():
            out.append(Segment("fixed", before + PARAMETER, index))
            out.append(Segment("key", slot, index, slot))
            out.append(Segment("fixed", ">" + around, index, slot))
            out.append(Segment("value", style.render(value), index, slot))
            before = around + PARAMETER_END + style.gap("comma", 2)
        end = around + PARAMETER_END + style.gap("close", 2) if arguments else before
        return [*out, Segment("end", end + FUNCTION_END, index)]


OPENING = "<tool_call>\n" + FUNCTION
QWEN3_CODER = QwenXml("qwen3_coder", OPENING, "\n</tool_call>\n" + OPENING, "\n</tool_call>")
MIMO_OPENING = "<tool_call>" + FUNCTION
MIMO = QwenXml("mimo", MIMO_OPENING, "</tool_call>" + MIMO_OPENING, "</tool_call>", profile=COMPACT)


def xml_value(raw: str) -> Any:
    """What stands between the tags of a parameter: JSON where it reads as such and is written so, else a string."""
    try:
        value = json.loads(TO_JSON.get(raw, raw))
    except (ValueError, RecursionError):
        return raw
    style = XmlStyle(python_words=raw in TO_JSON)
    return value if not isinstance(value, str) and _written(style, value) == raw else raw


def _written(style: XmlStyle, value: Any) -> str | None:
    try:
        return style.render(value)
    except ValueError:
        return None
