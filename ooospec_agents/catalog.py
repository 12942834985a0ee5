"""Bound tools, as any client sends them, become an ordered catalog of functions and slots."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ooospec_agents.json_schema import Resolver, SchemaError, options_of, types_of

MAX_FUNCTIONS = 256
"""Functions of one request that are kept; later ones are not accelerated."""
MAX_SLOTS = 128
"""Slots of one function; a function with more is kept without slots."""
MAX_INNER = 16
"""Parameters inside one value that `inner_slots` finds."""
MAX_FUNCTION_CHARS = 32_768
"""JSON text of one function; a larger one is kept without slots."""
MAX_CATALOG_CHARS = 524_288
"""JSON text of all functions; those after it are kept without slots."""
MAX_NAME_CHARS = 256
"""Longest name of a function; one with a longer name is passed over."""
MAX_DESCRIPTION_CHARS = 2000
"""Characters kept of a description."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Slot:
    """One top-level parameter of one function. A nested object or list is one slot whose value is JSON.

    Attributes:
        name: The parameter's name.
        types: JSON types that a value may have, by their JSON Schema names; empty: any.
        description: The schema's description, or "".
        required: Whether the schema requires it.
        options: The values allowed by `enum` (or the one of `const`), in order; empty: no such limit.
        default: The schema's default; meaningful only if `has_default`.
        has_default: Whether the schema names a default.
        schema: The slot's JSON Schema with every `$ref` resolved (recursion cut off at a fixed depth).
    """

    name: str
    types: tuple[str, ...] = ()
    description: str = ""
    required: bool = False
    options: tuple[Any, ...] = ()
    default: Any = None
    has_default: bool = False
    schema: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Function:
    """One callable function. If its schema could not be read, `understood` is False: no slots."""

    name: str
    description: str = ""
    slots: tuple[Slot, ...] = ()
    understood: bool = True

    def slot(self, name: str) -> Slot | None:
        """The slot of that name, or None."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, Slot]:
        return {slot.name: slot for slot in reversed(self.slots)}  # of two of one name the first counts


@dataclass(frozen=True)
class Catalog:
    """The ordered functions bound to a request. `id` is a hash of the content: equal tools, equal id."""

    functions: tuple[Function, ...] = ()
    id: str = ""

    def function(self, name: str) -> Function | None:
        """The function of that name, or None."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, Function]:
        return {function.name: function for function in reversed(self.functions)}

    @classmethod
    def from_tools(cls, tools: Any) -> Catalog:
        """Read OpenAI tools (Chat or Responses form). Never raises for what stands inside `tools`.

        What is no function tool is passed over, and of several functions of one name the first counts. A
        function whose schema is not understood, or too large, is kept without slots.

        Args:
            tools: The request's `tools`: a sequence of JSON objects; anything else is an empty catalog.
        """
        functions: dict[str, Function] = {}
        room = MAX_CATALOG_CHARS
        for tool in tools if isinstance(tools, list | tuple) else ():
            definition = _definition(tool)
            if definition is None or definition["name"] in functions or len(functions) >= MAX_FUNCTIONS:
                continue
            function, size = _read(definition, min(room, MAX_FUNCTION_CHARS))
            functions[function.name] = function
            room -= size
        return cls._of(tuple(functions.values()))

    @classmethod
    def _of(cls, functions: tuple[Function, ...]) -> Catalog:
        text = json.dumps([_function_data(function) for function in functions])
        return cls(functions, hashlib.sha256(text.encode()).hexdigest()[:32])

    def to_json(self) -> str:
        """The catalog as JSON text, for a process on the same machine; `from_json` reads it back."""
        functions = [_function_data(function) for function in self.functions]
        return json.dumps({"id": self.id, "functions": functions}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Catalog:
        """Read what `to_json` wrote; the text is trusted, since only our own processes send it.

        Raises:
            ValueError: The text is not of that form.
        """
        try:
            data = json.loads(text)
            return cls(tuple(_function_of(one) for one in data["functions"]), data["id"])
        except (KeyError, TypeError, AttributeError) as error:
            msg = f"not a catalog's JSON: {error!r}"
            raise ValueError(msg) from error


def _definition(tool: Any) -> Mapping[str, Any] | None:
    """The object that has the function's name and parameters, or None for what is no function tool."""
    if not isinstance(tool, Mapping):
        return None
    nested = tool.get("function")
    if isinstance(nested, Mapping) and tool.get("type", "function") == "function":
        definition: Mapping[str, Any] = nested
    elif tool.get("type") == "function":
        definition = tool
    else:
        return None
    name = definition.get("name")
    return definition if isinstance(name, str) and 0 < len(name) <= MAX_NAME_CHARS else None


def _read(definition: Mapping[str, Any], room: int) -> tuple[Function, int]:
    """The function, and the characters of its JSON text, at most `room` unless it has no slots."""
    name, description = definition["name"], _description(definition)
    bare = Function(name, description, understood=False)
    try:
        function = Function(name, description, _slots(definition.get("parameters")))
        size = len(json.dumps(_function_data(function), allow_nan=False))
    except (SchemaError, TypeError, ValueError, RecursionError) as error:
        _log.debug("Function %r is not accelerated, its schema is not understood: %s", name, error)
        return bare, len(name) + len(description)
    return (function, size) if size <= room else (bare, len(name) + len(description))


def _slots(parameters: Any) -> tuple[Slot, ...]:
    if parameters is None:
        return ()
    schema = Resolver(parameters).resolve(parameters)
    if "properties" not in schema:
        # Optional[Model] at the top: the one branch that is an object.
        branches = [part for key in ("anyOf", "oneOf") for part in schema.get(key) or ()]
        objects = [part for part in branches if isinstance(part, dict) and part.get("type") != "null"]
        if len(objects) == 1:
            schema = objects[0]
        elif objects:
            msg = "alternatives at the top level"
            raise SchemaError(msg)
    types = types_of(schema)
    if types and "object" not in types:
        msg = f"arguments of type {types!r}, not an object"
        raise SchemaError(msg)
    properties = schema.get("properties", {})
    if len(properties) > MAX_SLOTS:
        msg = f"{len(properties)} parameters, at most {MAX_SLOTS} are read"
        raise SchemaError(msg)
    names = required_in(schema)
    return tuple(slot_of(name, part, name in names) for name, part in properties.items())


def required_in(schema: Mapping[str, Any]) -> list[Any]:
    """The names that an object's schema requires."""
    named = schema.get("required")
    return named if isinstance(named, list) else []


def slot_of(name: str, schema: dict[str, Any], required: bool) -> Slot:
    """A slot from its name and its JSON Schema, in which every `$ref` is resolved."""
    return Slot(
        name=name,
        types=types_of(schema),
        description=_description(schema),
        required=required,
        options=options_of(schema),
        default=schema.get("default"),
        has_default="default" in schema,
        schema=schema,
    )


def inner_slots(slot: Slot) -> Iterator[tuple[str, Slot]]:
    """The parameters inside a list or an object as its schema has them, outer ones first, `MAX_INNER` at most.

    Yields:
        The path to each, such as "[].name" for a property of the objects in a list; and the parameter.
    """
    waiting: deque[tuple[str, str, Mapping[str, Any]]] = deque([("", slot.name, slot.schema)])
    found = 0
    while waiting and found < MAX_INNER:
        path, name, schema = waiting.popleft()
        items, properties = schema.get("items"), schema.get("properties")
        parts = [("[]", name, items, True)] if isinstance(items, dict) else []
        if isinstance(properties, dict):
            names = required_in(schema)
            parts += [("." + key, key, part, key in names) for key, part in properties.items()]
        for step, inner, part, required in parts[: MAX_INNER - found]:
            if isinstance(part, dict):
                found += 1
                yield path + step, slot_of(inner, part, required)
                waiting.append((path + step, inner, part))


def _description(data: Mapping[str, Any]) -> str:
    text = data.get("description")
    return text[:MAX_DESCRIPTION_CHARS] if isinstance(text, str) else ""


def _function_data(function: Function) -> dict[str, Any]:
    slots = [{"name": slot.name, "required": slot.required, "schema": slot.schema} for slot in function.slots]
    data = {"name": function.name, "description": function.description, "slots": slots}
    return data if function.understood else {**data, "understood": False}


def _function_of(data: Mapping[str, Any]) -> Function:
    # The rest of a slot is read off its schema again, which costs less than sending it.
    slots = tuple(slot_of(slot["name"], slot["schema"], slot["required"]) for slot in data["slots"])
    return Function(data["name"], data["description"], slots, data.get("understood", True))
