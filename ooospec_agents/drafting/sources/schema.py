"""What the schema itself says of a slot: its constant, options, default and examples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ooospec_agents.catalog import Slot
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.formats.style import VALUE_LEVEL, Style

EXAMPLE = re.compile(
    r"(?:e\.g\.?,?|for example,?|such as|example:|like)\s*[:,]?\s*(?:'([^']{1,60})'|\"([^\"]{1,60})\"|([\w.+-]+))",
    re.I,
)
MAX_OPTIONS = 8


def schema_guesses(slot: Slot) -> list[Guess]:
    """Values that the schema names, likeliest first."""
    out: list[Guess] = []
    if len(slot.options) == 1:
        return [Guess(slot.options[0], 0.95, "schema")]
    if slot.has_default and slot.default is not None:
        out.append(Guess(slot.default, 0.5, "schema"))
    if slot.options:
        out += [Guess(option, 0.5 / len(slot.options), "schema") for option in slot.options[:MAX_OPTIONS]]
    elif "boolean" in slot.types:
        out += [Guess(True, 0.5, "schema"), Guess(False, 0.3, "schema")]
    else:
        out += [Guess(value, 0.15, "schema") for value in examples(slot)]
    return out


def opening_of(slot: Slot, style: Style) -> str:
    """How a value of the slot begins, whatever it is; "" where its type does not tell."""
    if slot.options:
        try:
            written = [style.render(option) for option in slot.options]
        except ValueError:
            return ""
        low, high = min(written), max(written)  # what the first and the last in order share, all share
        return low[: next((at for at, char in enumerate(low) if high[at : at + 1] != char), len(low))]
    return _opening(slot.schema, slot.types, style)


def _opening(schema: Mapping[str, Any], types: Sequence[str], style: Style) -> str:
    if list(types) == ["string"]:
        return '"'
    if list(types) == ["object"]:
        return "{" + style.gap("open", VALUE_LEVEL) + '"'
    if list(types) == ["array"] and not style.lists:
        items = schema.get("items")
        kind = items.get("type") if isinstance(items, Mapping) else None
        return "[" + (_opening(items, [kind], style) if isinstance(items, Mapping) and isinstance(kind, str) else "")
    return ""


def examples(slot: Slot) -> list[Any]:
    """Values that the schema names as examples, at most three."""
    named = slot.schema.get("examples")
    found = list(named[:2]) if isinstance(named, list) else []
    for match in EXAMPLE.finditer(slot.description[:400]):
        text = next(part for part in match.groups() if part)
        if "string" in slot.types or not slot.types:
            found.append(text)
        elif "integer" in slot.types and text.lstrip("-").isdigit():
            found.append(int(text))
    return found[:3]
