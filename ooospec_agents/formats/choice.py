"""Which wire format a request will be answered in: what vLLM's parser reads, or what its grammar forces."""

from __future__ import annotations

HERMES_PARSERS = frozenset({"hermes", "qwen3_json", "ooospec_json"})
"""vLLM tool-call parsers whose grammar under "required" is hermes markup."""

AUTO_FORMATS = {
    "hermes": "hermes",
    "qwen3_json": "hermes",
    "ooospec_json": "fenced",
    "llama3_json": "llama3_json",
    "llama4_json": "llama3_json",
    "mistral": "mistral",
    "pythonic": "pythonic",
    "llama4_pythonic": "pythonic",
    "lfm2": "lfm2",
    "olmo3": "olmo3",
    "qwen3_coder": "qwen3_coder",
    "qwen3_xml": "qwen3_coder",
    "step3p5": "qwen3_coder",
    "mimo": "mimo",
    "xlam": "array",
}
"""What a target behind a parser is expected to write on its own, until its dialect is known."""

FORCED_IN_THEIR_OWN = ("llama3_json", "llama4_json", "qwen3_coder", "qwen3_xml", "step3p5", "mimo")
FORCED_FORMATS = {
    **dict.fromkeys(HERMES_PARSERS, "hermes"),
    **{parser: AUTO_FORMATS[parser] for parser in FORCED_IN_THEIR_OWN},
    "mistral": "mistral_json",
}
"""What vLLM's grammar makes of a required or a named call, by parser, where that is no plain JSON (vLLM 0.32)."""

UNKNOWN_FORMATS = frozenset(
    {
        *("deepseek_v3", "deepseek_v31", "deepseek_v32", "deepseek_v4", "deepseek_v41", "dots", "gemma4", "glm45"),
        *("glm47", "hy_v4", "inkling", "k2_horizon", "kimi_k2", "kimi_k3", "ling3", "longcat", "minimax_m2"),
        *("minimax_m3", "muse_glimmer", "openai", "plamo3", "poolside_v1"),
    }
)
"""Parsers of formats that are not written here, and that vLLM does not replace by JSON when a call is forced."""


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
    parser = tool_call_parser or ""
    named = isinstance(tool_choice, dict)
    if named or tool_choice == "required":
        return None if parser in UNKNOWN_FORMATS else FORCED_FORMATS.get(parser, "arguments" if named else "array")
    if isinstance(response_format, dict) and response_format.get("type") not in (None, "text"):
        return None
    return AUTO_FORMATS.get(parser)
