"""Calls that `max_tokens` cut, marked so that no reader takes them for whole.

LangChain closes open strings and braces, so that `{"to": "ann` reads as a call and an agent runs it half-told; it
reads empty arguments as `{}`, and some servers close the braces of a cut call themselves. So where an answer was cut,
its last call counts as cut, whatever its arguments look like. It gets an ending that no reader can complete and
becomes an invalid call, as one that is no JSON at all.
"""

from __future__ import annotations

import json

from langchain_core.utils.json import parse_partial_json
from openai.types.chat import ChatCompletion
from openai.types.responses import Response, ResponseFunctionToolCall

_ENDINGS = ("]", "}", '"]', '"}', '\\"]', '\\"}')


def spoiler(arguments: str) -> str:
    """The shortest ending with which neither LangChain's own reader nor JSON's finds arguments."""
    for ending in _ENDINGS:
        try:
            if not isinstance(parse_partial_json(arguments + ending), dict):
                return ending
        except ValueError:
            return ending
    return _ENDINGS[0]


def is_whole(arguments: str) -> bool:
    """Whether the arguments are JSON."""
    try:
        json.loads(arguments, strict=False)
    except ValueError:
        return False
    return True


def is_cut(response: Response) -> bool:
    """Whether an answer of the Responses API was cut."""
    details = response.incomplete_details
    return response.status == "incomplete" and (details is None or details.reason == "max_output_tokens")


def mark_completion(completion: ChatCompletion) -> None:
    """Mark the cut calls of an answer that was not streamed."""
    for choice in completion.choices:
        if choice.finish_reason != "length" or not choice.message.tool_calls:
            continue
        functions = [call.function for call in choice.message.tool_calls if call.type == "function"]
        for function in functions:
            arguments = function.arguments or ""
            if function is functions[-1] or not is_whole(arguments):
                function.arguments = arguments + spoiler(arguments)


def mark_response(response: Response) -> None:
    """Mark the cut call of an answer of the Responses API: its last item, if that is a call."""
    last = response.output[-1] if response.output else None
    if is_cut(response) and isinstance(last, ResponseFunctionToolCall):
        last.arguments += spoiler(last.arguments)
