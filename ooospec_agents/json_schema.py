"""JSON Schema as tool definitions use it: references resolved, `allOf` merged, types and options read off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

JSON_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
MAX_DEPTH = 12
"""Nesting of schemas that is followed; what lies deeper, or inside itself twice, becomes `{}`: any value."""
MAX_NODES = 4000
"""Schemas visited for one function; more is refused."""
MAX_OPTIONS = 256
"""Longest enum that is kept as options; a longer one counts as no limit."""

_LISTS = ("anyOf", "oneOf", "prefixItems")
_SINGLES = ("items", "additionalProperties", "contains", "not", "propertyNames")
_MAPS = ("properties", "patternProperties")
_DROPPED = ("$ref", "$defs", "definitions", "allOf", "$schema", "$id")


class SchemaError(ValueError):
    """A schema that is not understood. The message says why."""


class Resolver:
    """Resolves the schemas of one document.

    Args:
        root: The document that `#/...` references point into.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self._nodes = 0

    def resolve(self, schema: Any, path: tuple[str, ...] = (), depth: int = 0) -> dict[str, Any]:
        """The schema without references and without `allOf`.

        Args:
            schema: A schema; `True` and `{}` allow anything.
            path: References being followed, outermost first.
            depth: Schemas around this one.

        Raises:
            SchemaError: It is no schema, points nowhere or outside its document, or is too large.
        """
        self._nodes += 1
        if self._nodes > MAX_NODES:
            msg = f"more than {MAX_NODES} nested schemas"
            raise SchemaError(msg)
        if schema is True or depth > MAX_DEPTH:
            return {}
        if schema is False:
            return {"not": {}}
        if not isinstance(schema, Mapping):
            msg = f"not a schema: {str(schema)[:80]!r}"
            raise SchemaError(msg)
        own = {key: value for key, value in schema.items() if key not in _DROPPED}
        for key in _LISTS:
            if isinstance(own.get(key), list):
                own[key] = [self.resolve(part, path, depth + 1) for part in own[key]]
        for key in _SINGLES:
            if isinstance(own.get(key), Mapping):
                own[key] = self.resolve(own[key], path, depth + 1)
        for key in _MAPS:
            if key in own:
                if not isinstance(own[key], Mapping):
                    msg = f"{key!r} is not an object"
                    raise SchemaError(msg)
                own[key] = {str(name): self.resolve(part, path, depth + 1) for name, part in own[key].items()}
        merged: dict[str, Any] = {}
        for part in self._bases(schema, path, depth):
            merged = _merge(merged, part)
        return _merge(merged, own)

    def _bases(self, schema: Mapping[str, Any], path: tuple[str, ...], depth: int) -> list[dict[str, Any]]:
        """What stands under `$ref` and `allOf`, resolved."""
        bases = []
        if "$ref" in schema:
            ref = schema["$ref"]
            if not isinstance(ref, str) or not ref.startswith("#"):
                msg = f"reference {str(ref)[:80]!r} does not point into the same document"
                raise SchemaError(msg)
            # Once around a recursive type is kept: its own arguments are what a call mostly fills.
            if path.count(ref) < 2:
                bases.append(self.resolve(self._target(ref), (*path, ref), depth + 1))
        parts = schema.get("allOf", [])
        if not isinstance(parts, list):
            msg = "'allOf' is not a list"
            raise SchemaError(msg)
        bases += [self.resolve(part, path, depth + 1) for part in parts]
        return bases

    def _target(self, ref: str) -> Any:
        """What a `#/a/b` reference points at (RFC 6901)."""
        here = self._root
        for step in unquote(ref[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(here, Mapping) and key in here:
                here = here[key]
            elif isinstance(here, list) and key.isascii() and key.isdigit() and int(key) < len(here):
                here = here[int(key)]
            else:
                msg = f"reference {ref[:80]!r} points nowhere"
                raise SchemaError(msg)
        return here


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both schemas at once: properties and requirements united, types and enums intersected."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if key in _MAPS and isinstance(old, dict) and isinstance(value, Mapping):
            united = dict(old)
            for name, part in value.items():
                united[name] = _merge(united[name], part) if name in united else part
            merged[key] = united
        elif key == "required" and isinstance(old, list) and isinstance(value, list):
            merged[key] = old + [name for name in value if name not in old]
        elif key == "enum" and isinstance(old, list) and isinstance(value, list):
            merged[key] = [option for option in old if option in value]
        elif key == "type" and old is not None:
            allowed = types_of({"type": value})
            both = [name for name in types_of({"type": old}) if name in allowed]
            merged[key] = both if both else value
        else:
            merged[key] = value
    return merged


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The JSON types that a value of a resolved schema may have; empty: any.

    Raises:
        SchemaError: `type` is neither a name nor a list of names.
    """
    names = _own_types(schema)
    if names and schema.get("nullable") is True:
        names.append("null")
    return tuple(dict.fromkeys(names))


def _own_types(schema: Mapping[str, Any]) -> list[str]:
    if "type" in schema and schema["type"] is not None:
        declared = schema["type"]
        names = declared if isinstance(declared, list) else [declared]
        if not all(isinstance(name, str) for name in names):
            msg = f"'type' is {str(declared)[:80]!r}, not a name or a list of names"
            raise SchemaError(msg)
        # A name that JSON Schema does not know ("any", "float") limits nothing that we could check.
        return list(names) if all(name in JSON_TYPES for name in names) else []
    branches = _branches(schema)
    if branches:
        found = [types_of(branch) for branch in branches]
        return [name for types in found for name in types] if all(found) else []
    options = _own_options(schema)
    if options:
        return [type_of(option) for option in options]
    if "properties" in schema:
        return ["object"]
    return ["array"] if "items" in schema or "prefixItems" in schema else []


def options_of(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values that a resolved schema allows by `enum` or `const`, in order; empty: no such limit."""
    options = _own_options(schema)
    branches = _branches(schema)
    if not options and branches:
        found = [[None] if types_of(part) == ("null",) else list(options_of(part)) for part in branches]
        # Optional[str] has a branch without options, and null alone is no choice.
        if all(found) and any(option is not None for part in found for option in part):
            options = [option for part in found for option in part]
    return tuple(options) if len(options) <= MAX_OPTIONS else ()


def _own_options(schema: Mapping[str, Any]) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    enum = schema.get("enum")
    return list(enum) if isinstance(enum, list) else []


def _branches(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return [part for part in schema[key] if isinstance(part, dict)]
    return []


def type_of(value: Any) -> str:
    """The JSON type's name of a Python value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"
