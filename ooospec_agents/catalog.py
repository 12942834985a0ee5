"""Bound tools, as any client sends them, become an ordered catalog of functions and slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Slot:
    """One top-level parameter of one function. A nested object or list is one slot whose value is JSON.

    Attributes:
        name: The parameter's name.
        types: JSON types that a value may have, as in JSON Schema ("string", "integer", ..., "null"); empty: any.
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
    """One callable function. `understood` is False where the schema could not be read: it then has no slots."""

    name: str
    description: str = ""
    slots: tuple[Slot, ...] = ()
    understood: bool = True

    def slot(self, name: str) -> Slot | None:
        """The slot of that name, or None."""
        return next((slot for slot in self.slots if slot.name == name), None)


@dataclass(frozen=True)
class Catalog:
    """The ordered functions bound to a request. `id` is a hash of the content: equal tools, equal id."""

    functions: tuple[Function, ...] = ()
    id: str = ""

    def function(self, name: str) -> Function | None:
        """The function of that name, or None."""
        return next((function for function in self.functions if function.name == name), None)

    @classmethod
    def from_tools(cls, tools: Sequence[Any]) -> Catalog:
        """Read OpenAI tools (Chat or Responses form). Never raises for what stands inside a tool."""
        raise NotImplementedError
