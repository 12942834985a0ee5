"""What client and server read alike in a request's JSON body, in the Chat Completions or the Responses form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def messages_of(body: Mapping[str, Any]) -> list[Any]:
    """The conversation as a list of messages, whichever form it has in the body."""
    messages = body.get("messages", body.get("input"))
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list):
        return []
    instructions = body.get("instructions")
    return [{"role": "system", "content": instructions}, *messages] if instructions else messages


def forced_function(tool_choice: object) -> str:
    """The one function that `tool_choice` names, or ""."""
    if not isinstance(tool_choice, Mapping):
        return ""
    function = tool_choice.get("function")
    name = function.get("name") if isinstance(function, Mapping) else tool_choice.get("name")
    return name if isinstance(name, str) else ""
