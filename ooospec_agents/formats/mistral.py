"""Mistral's calls: `[TOOL_CALLS]name[ARGS]{...}`, the older list, and the bare list of a forced call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ooospec_agents.formats.name_first import NameFirst
from ooospec_agents.formats.style import Style
from ooospec_agents.formats.wire import ARGUMENTS, Segment, WireFormat

CALLS_MARK = "[TOOL_CALLS]"


@dataclass(frozen=True)
class Mistral(NameFirst):
    """A name, then the arguments as a JSON object."""

    def _call(self, index: int, name: str, arguments: Mapping[str, Any], style: Style) -> list[Segment]:
        head = self.after_name.removesuffix("{")
        return [
            Segment("name", name, index),
            Segment("fixed", head, index),
            *ARGUMENTS._call(index, name, arguments, style),
        ]


MISTRAL = Mistral("mistral", CALLS_MARK, CALLS_MARK, "", after_name="[ARGS]{")
MISTRAL_ARRAY = WireFormat("mistral_array", CALLS_MARK + "[", ", ", "]", openings=(CALLS_MARK + " [",))
MISTRAL_JSON = WireFormat("mistral_json", "[", ", ", "]")
