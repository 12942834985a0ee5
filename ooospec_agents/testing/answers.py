"""A script that obliges: it calls the tools it is given, with arguments that fit schema and conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ooospec_agents.testing.script import Call, Reply

_MAX_DEPTH = 8


def oblige(body: Mapping[str, Any]) -> Reply:
    """Answer a chat request as a willing model would, without one.

    A named tool, or else the first, is called unless the last message is a tool's result. Numbers and quoted
    texts of the last user message become arguments, in order; the rest is made up to satisfy the schema.
    Without tools, a wish for JSON is answered with an object, anything else with a sentence.
    """
    messages = body.get("messages") or []
    text = _last_user_text(messages)
    function = _chosen(body, messages)
    if function is not None:
        arguments = _Filler(text).value(function.get("parameters") or {"type": "object"})
        return Reply(calls=(Call(str(function.get("name")), arguments),))
    wish = body.get("response_format") or {}
    if wish.get("type") == "json_schema":
        return Reply(content=json.dumps(_Filler(text).value(wish["json_schema"].get("schema") or {})))
    if wish.get("type") == "json_object":
        return Reply(content=json.dumps({key: f"some {key}" for key in re.findall(r"'(\w+)'", text)}))
    return Reply(content=f"You said: {text}")


def _chosen(body: Mapping[str, Any], messages: list[Any]) -> Mapping[str, Any] | None:
    functions: list[Mapping[str, Any]] = [
        tool["function"] for tool in body.get("tools") or [] if tool.get("type") == "function"
    ]
    choice = body.get("tool_choice")
    if not functions or choice == "none":
        return None
    if isinstance(choice, dict):
        name = choice.get("function", {}).get("name")
        return next((function for function in functions if function.get("name") == name), None)
    if choice != "required" and messages and messages[-1].get("role") == "tool":
        return None
    return next(iter(functions))


def _last_user_text(messages: list[Any]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, list):
                return " ".join(part.get("text", "") for part in content if isinstance(part, dict))
            return str(content or "")
    return ""


class _Filler:
    """Makes values that satisfy a schema, using up what the text offers."""

    def __init__(self, text: str) -> None:
        self._numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]
        self._quoted = re.findall(r"'([^']+)'|\"([^\"]+)\"", text)
        self._text = text

    def value(self, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
        root = schema if root is None else root
        if depth > _MAX_DEPTH:
            return None
        reference = schema.get("$ref")
        if isinstance(reference, str):
            name = reference.rsplit("/", 1)[-1]
            found = (root.get("$defs") or root.get("definitions") or {}).get(name, {})
            return self.value(found, root, depth + 1)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][0]
        for key in ("anyOf", "oneOf", "allOf"):
            if schema.get(key):
                return self.value(schema[key][0], root, depth + 1)
        kind = schema.get("type")
        return self._typed(kind[0] if isinstance(kind, list) else kind, schema, root, depth)

    def _typed(self, kind: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
        match kind:
            case "integer":
                return int(self._numbers.pop(0)) if self._numbers else 1
            case "number":
                return self._numbers.pop(0) if self._numbers else 1.5
            case "boolean":
                return True
            case "null":
                return None
            case "array":
                return [self.value(schema.get("items") or {"type": "string"}, root, depth + 1)]
            case "object":
                slots = schema.get("properties") or {}
                return {name: self.value(slot, root, depth + 1) for name, slot in slots.items()}
        if self._quoted:
            single, double = self._quoted.pop(0)
            return single or double
        return self._text[:40] or "text"
