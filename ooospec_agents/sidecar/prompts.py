"""The sidecar's prompts: plain text, what is shared first, one question last.

A prompt is `prefix(catalog) + conversation(messages) + question`, and its answer begins with one space. The
prefix is the same bytes for the same catalog and a conversation grows at its end, so that a server computes
both once for a whole wave and once more only for what a turn adds. Every part ends with a newline or with
"Answer:", where tokenizers of GPT-2's kind do not merge across: parts can be tokenized one by one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.sidecar.answers import ABSENT, render_answer

__all__ = [
    "ABSENT",
    "NO_CALL",
    "conversation",
    "function_answer",
    "function_question",
    "prefix",
    "render_answer",
    "slot_question",
]

NO_CALL = "none"
"""The answer to the function question when nothing is called."""
MAX_CATALOG_CHARS = 6000
"""Characters of the compact catalog; descriptions are given up first, then the last functions."""
MAX_CONVERSATION_CHARS = 4000
"""Characters of the conversation, counted from its end."""
MAX_MESSAGE_CHARS = 2000
"""Characters of one message; of a longer one the middle is left out."""
MAX_DESCRIPTION_CHARS = 300
"""Characters of a slot's description in its question."""
MAX_OPTIONS_CHARS = 400
"""Characters of a slot's options in its question."""

_INSTRUCTION = """\
Predict the next tool call and the value of each argument. Copy values from the conversation. \
Write null for a value that is not given.
"""
_EXAMPLE = """\
Tools:
[0] send_mail(to, text): Sends a mail
[1] get_weather(city, unit, day): Tells the weather
Conversation:
User: How warm is it in Oslo?
Question: Which tool is called next? Its number, 0 to 1, or none.
Answer: 1
Question: get_weather, value of city (string, required)? The city.
Answer: Oslo
Question: get_weather, value of unit (string, optional)? Options: C, F. Default: C.
Answer: C
Question: send_mail, value of to (string, required)? Who gets it.
Answer: null

"""
_STEP = MAX_CONVERSATION_CHARS // 4
_ROLES = {
    "system": "System",
    "developer": "System",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Result",
}


def prefix(catalog: Catalog, *, example: bool = False) -> str:
    """The instruction and the compact catalog: `[i] name(arg, arg): first sentence`, a line a function.

    Args:
        catalog: The functions bound to the request.
        example: Show answered questions first, for a model that was not trained on these prompts.
    """
    for width in (160, 60, 0):
        lines = [_line(index, function, width) for index, function in enumerate(catalog.functions)]
        if sum(map(len, lines)) + len(lines) <= MAX_CATALOG_CHARS:
            break
    text = "".join(f"{line}\n" for line in lines)
    if len(text) > MAX_CATALOG_CHARS:
        text = text[: text.rfind("\n", 0, MAX_CATALOG_CHARS) + 1]
    return f"{_INSTRUCTION}{_EXAMPLE if example else ''}Tools:\n{text}"


def _line(index: int, function: Function, width: int) -> str:
    head = f"[{index}] {function.name}({', '.join(slot.name for slot in function.slots)})"
    sentence = _clip(_flat(function.description).split(". ", 1)[0].rstrip("."), width)
    return f"{head}: {sentence}" if sentence else head


def conversation(messages: Sequence[Any]) -> str:
    """The messages, a line or more each; cut from the left, in steps, so that most turns keep the same start.

    Args:
        messages: Chat messages as JSON objects; what is no message is passed over.
    """
    text = "".join(_message(message) for message in messages if isinstance(message, Mapping))
    over = len(text) - MAX_CONVERSATION_CHARS
    if over > 0:
        text = text[-(-over // _STEP) * _STEP :]
    return f"Conversation:\n{text}"


def _message(message: Mapping[str, Any]) -> str:
    role = _ROLES.get(str(message.get("role")), "User")
    parts = [_text(message.get("content"))]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            parts.append(f"{function.get('name')} {_text(function.get('arguments'))}")
    body = "\n".join(part for part in parts if part)
    if len(body) > MAX_MESSAGE_CHARS:
        half = MAX_MESSAGE_CHARS // 2
        body = f"{body[:half]} ... {body[-half:]}"
    return f"{role}: {body}\n"


def _text(content: Any) -> str:
    """A message's text: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content.strip()
    if isinstance(content, list | tuple):
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "\n".join(text.strip() for text in texts if isinstance(text, str))
    return ""


def function_question(catalog: Catalog) -> str:
    """Asks for the index of the function that is called next, or `none`."""
    last = len(catalog.functions) - 1
    return f"Question: Which tool is called next? Its number, 0 to {last}, or {NO_CALL}.\nAnswer:"


def function_answer(catalog: Catalog, name: str | None) -> str:
    """The answer to the function question, with the space before it; `name` None for no call.

    Raises:
        ValueError: The catalog has no such function.
    """
    if name is None:
        return f" {NO_CALL}"
    return f" {[function.name for function in catalog.functions].index(name)}"


def slot_question(function: Function, slot: Slot) -> str:
    """Asks for one slot's value, with all that its schema says."""
    need = "required" if slot.required else "optional"
    text = f"Question: {function.name}, value of {slot.name} ({_type(slot.schema, slot.types)}, {need})?"
    if slot.description:
        text += f" {_clip(_flat(slot.description), MAX_DESCRIPTION_CHARS).rstrip('.')}."
    if slot.options:
        options = ", ".join(_written(option) for option in slot.options)
        text += f" Options: {_clip(options, MAX_OPTIONS_CHARS)}."
    if slot.has_default:
        text += f" Default: {_clip(_written(slot.default), 100)}."
    return f"{text}\nAnswer:"


def _type(schema: Mapping[str, Any], types: tuple[str, ...]) -> str:
    """The type in words, one level deep."""
    names = [name for name in types if name != "null"] or ["any"]
    items, properties = schema.get("items"), schema.get("properties")
    words = []
    for name in names:
        if name == "array" and isinstance(items, Mapping) and isinstance(items.get("type"), str):
            words.append(f"array of {items['type']}")
        elif name == "object" and isinstance(properties, Mapping) and properties:
            words.append(f"object of {', '.join(list(properties)[:12])}")
        else:
            words.append(name)
    return " or ".join(words)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 0)].rstrip() + ("..." if width else "")
