"""Wire formats: how targets write calls, and which one a request will be answered in."""

from __future__ import annotations

from ooospec_agents.formats.style import FLAT, INDENTED, Profile, Style
from ooospec_agents.formats.wire import FORMATS, Kind, Segment, WireFormat

__all__ = [
    "FLAT",
    "FORMATS",
    "INDENTED",
    "Kind",
    "Profile",
    "Segment",
    "Style",
    "WireFormat",
    "choose_format",
]

HERMES_PARSERS = frozenset({"hermes", "qwen3_json", "ooospec_json"})
"""vLLM tool-call parsers whose grammar under "required" is hermes markup."""

AUTO_FORMATS = {
    "hermes": "hermes",
    "qwen3_json": "hermes",
    "ooospec_json": "fenced",
    "llama3_json": "json",
    "xlam": "array",
}
"""What a target behind a parser is expected to write on its own, until its dialect is known."""


def choose_format(
    tool_call_parser: str | None, tool_choice: object, response_format: object = None, has_tools: bool = True
) -> str | None:
    """Name the wire format that a request will be answered in, or None where nothing should be drafted.

    Args:
        tool_call_parser: Value of vLLM's `--tool-call-parser`, or None.
        tool_choice: The request's `tool_choice`; None counts as "auto".
        response_format: The request's `response_format`: a constrained answer is no call.
        has_tools: Whether functions are bound to the request.
    """
    if not has_tools or tool_choice == "none":
        return None
    constrained = isinstance(response_format, dict) and response_format.get("type") not in (None, "text")
    if tool_choice == "required":
        return "hermes" if tool_call_parser in HERMES_PARSERS else "array"
    if isinstance(tool_choice, dict):
        return "hermes" if tool_call_parser in HERMES_PARSERS else "arguments"
    if constrained:
        return None
    return AUTO_FORMATS.get(tool_call_parser or "")
