"""The wire formats of the JSON family, and a whole call written in one as segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ooospec_agents.formats.style import FLAT, INDENTED, Profile, Style, quoted

Kind = Literal["text", "fixed", "name", "key", "value", "end"]
"""What a stretch of output is: text outside calls, fixed markup, a function name, a parameter name (quoted), a value,
or what follows the last value of a call."""


class Segment(NamedTuple):
    """A stretch of output. `call` counts calls from 0; `slot` is the parameter that a key or value belongs to."""

    kind: Kind
    text: str
    call: int = 0
    slot: str = ""


@dataclass(frozen=True)
class WireFormat:
    """How a target writes calls.

    Attributes:
        name: Name of the format.
        opening: Text before the first call's object.
        between: Text between two calls' objects.
        closing: Text after the last call's object.
        arguments_key: Key of the arguments in a call's object.
        bare: The output is the arguments object alone (a named function).
        profile: The layout to expect before any call was seen.
        openings: What else targets of this format write before the first call's object.
        separators: Characters that may stand between calls, besides whitespace.
    """

    name: str
    opening: str
    between: str
    closing: str
    arguments_key: str = "arguments"
    bare: bool = False
    profile: Profile = FLAT
    openings: tuple[str, ...] = ()
    separators: str = "[,"

    def write(self, calls: Sequence[tuple[str, Mapping[str, Any]]], style: Style | None = None) -> list[Segment]:
        """Write whole calls (name, arguments) as segments; their texts joined are the output.

        Raises:
            ValueError: A value is no JSON.
        """
        style = style or self.profile.style()
        out = [Segment("fixed", self.opening)] if self.opening else []
        for index, (name, arguments) in enumerate(calls):
            if index:
                out.append(Segment("fixed", self.between, index))
            out += self._call(index, name, arguments, style)
        if self.closing:
            out.append(Segment("end", self.closing, max(len(calls) - 1, 0)))
        return out

    def _call(self, index: int, name: str, arguments: Mapping[str, Any], style: Style) -> list[Segment]:
        out: list[Segment] = []
        before = "{"
        if not self.bare:
            head = "{" + style.gap("open", 1) + '"name":' + style.gap("colon", 1)
            out = [Segment("fixed", head, index), Segment("name", quoted(name, style.ascii_only), index)]
            before = "," + style.gap("comma", 1) + f'"{self.arguments_key}":' + style.gap("colon", 1) + "{"
        before += style.gap("open", 2) if arguments else style.gap("empty", 2)
        for slot, value in arguments.items():
            out.append(Segment("fixed", before, index))
            out.append(Segment("key", quoted(slot, style.ascii_only), index, slot))
            out.append(Segment("fixed", ":" + style.gap("colon", 2), index, slot))
            out.append(Segment("value", style.render(value), index, slot))
            before = "," + style.gap("comma", 2)
        end = style.gap("close", 2) + "}" if arguments else before + "}"
        return [*out, Segment("end", end if self.bare else end + style.gap("close", 1) + "}", index)]


HERMES = WireFormat("hermes", "<tool_call>\n", "\n</tool_call>\n<tool_call>\n", "\n</tool_call>")
FENCED = WireFormat("fenced", "```json\n", "\n```\n\n```json\n", "\n```", profile=INDENTED)
PLAIN = WireFormat("json", "", "\n", "")
ARRAY = WireFormat("array", "[", ", ", "]", arguments_key="parameters")
ARGUMENTS = WireFormat("arguments", "", "\n", "", bare=True)

LLAMA3 = WireFormat("llama3_json", "", "; ", "", "parameters", openings=("<|python_tag|>",), separators="[,;")
