"""The conversation as one text: what values are copied from and words are compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ooospec_agents.drafting.request import MAX_CONVERSATION_CHARS


def conversation_text(messages: Sequence[Any], limit: int = MAX_CONVERSATION_CHARS) -> str:
    """OpenAI messages (or Responses input items) as lines `role: text`, the newest last; at most `limit` characters.

    Calls in earlier messages stand as their arguments' JSON. What is no message is passed over.
    """
    parts: list[str] = []
    room = limit
    for message in reversed(messages):
        if room <= 0:
            break
        if not isinstance(message, Mapping):
            continue
        text = f"{message.get('role', 'tool')}: {_content(message)}"
        parts.append(text[-room:])
        room -= len(text) + 1
    return "\n".join(reversed(parts))


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content", message.get("output"))
    texts: list[str] = []
    if isinstance(content, str):
        texts.append(content)
    elif isinstance(content, list):
        texts += [part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
            texts.append(f"{function.get('name')} {text}")
    return "\n".join(texts)
