"""How a list or an object that the target has begun goes on: its schema's keys, and the conversation's enumerations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, cast

from ooospec_agents.catalog import Slot, required_in, slot_of
from ooospec_agents.drafting.expectation import rendered
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.copying import GOES_ON_AFTER, ends_after, next_item
from ooospec_agents.drafting.sources.schema import opening_of
from ooospec_agents.formats.style import VALUE_LEVEL, Style, quoted

LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
WHITESPACE = " \t\r\n"
MAX_RAW = 4000
"""Characters of a value that are read."""
MAX_AHEAD = 400
"""Characters written on at most; a draft holds fewer."""
MAX_NUMBERED = 64
"""Characters of a key or a value that may be numbered."""
LISTED = 0.85
"""Probability that a list goes on, or ends, as the enumeration in the conversation that its last entry stands in."""
UNLISTED = 0.6
"""Probability that a list ends after an entry that no enumeration goes on from."""
COUNTED = 0.85
"""Probability of a key or a value that is numbered as those before it are."""
COUNTS = 0.65
"""Probability that what is numbered goes on with one more."""
# What stands before the last number, the number, and the little that may follow it.
NUMBERED = re.compile(r"(.*?)(\d{1,9})(\D{0,8})", re.DOTALL)
KNOWN_KEY = 0.95
OPTIONAL_KEY = 0.6

State = Literal["value", "key", "colon", "string", "name", "literal", "after"]
"""What comes next: a value, a key or the end; or what has begun: a string, a key, a number or word; or what follows."""


@dataclass
class Container:
    """A list or an object still open.

    Attributes:
        bracket: What opened it.
        keys: An object's keys, the one whose value is being written included.
        item: The last whole value.
        before: The one before that.
        gap: Whitespace before the first entry.
    """

    bracket: str
    keys: list[str] = field(default_factory=list)
    item: str = ""
    before: str = ""
    gap: str | None = None


@dataclass
class Place:
    """Where JSON text ends: its open containers, and what has begun in the innermost."""

    open: list[Container]
    state: State
    begun: str = ""
    blank: str = ""


@dataclass(frozen=True)
class Part:
    """Expected text. `opening` is what is sure of it, should all of it be too uncertain."""

    text: str
    source: str
    confidence: float
    opening: str = ""


def read(raw: str) -> Place:
    """Where JSON text that begins a list or an object stands."""
    place = Place([], "value")
    for char in raw[:MAX_RAW]:
        _read(place, char)
    return place


def _read(place: Place, char: str) -> None:
    if place.state in ("string", "name"):
        place.begun += char
        if char == '"' and not _escaped(place.begun):
            _end_string(place)
        return
    if char in WHITESPACE:
        if place.state == "literal":
            _end_value(place)
        place.blank += char
        return
    if place.open and place.open[-1].gap is None and char not in "]}":
        place.open[-1].gap = place.blank
    blank, place.blank = place.blank, ""
    if char == '"':
        place.state, place.begun = ("name" if place.state == "key" else "string"), char
    elif char in "[{":
        place.open.append(Container(char))
        place.state = "key" if char == "{" else "value"
    elif char in "]}":
        if place.state == "literal":
            _end_value(place)
        if place.open:
            place.open.pop()
        place.begun = char
        _end_value(place)
    elif char == ",":
        if place.state == "literal":
            _end_value(place)
        place.state = "key" if place.open and place.open[-1].bracket == "{" else "value"
    elif char == ":":
        place.state = "value"
    elif place.state == "literal":
        place.begun += blank + char
    else:
        place.state, place.begun = "literal", char


def _escaped(text: str) -> bool:
    before = text[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1 or len(text) == 1


def _end_string(place: Place) -> None:
    if place.state == "name":
        place.open[-1].keys.append(place.begun[1:-1])
        place.state, place.begun = "colon", ""
    else:
        _end_value(place)


def _end_value(place: Place) -> None:
    if place.open:
        inner = place.open[-1]
        inner.before, inner.item = inner.item, place.begun
    place.state, place.begun = "after", ""


def _path(place: Place) -> str:
    return "".join("[]" if outer.bracket == "[" else "." + "".join(outer.keys[-1:]) for outer in place.open)


class Property(NamedTuple):
    """A parameter inside a value: its name, and whether it must be there."""

    name: str
    required: bool


class GoingOn:
    """Writes a list or an object on, from where it stands to its end or to where nothing is known.

    Args:
        slot: The parameter whose value it is, if the schema knows it.
        style: The target's layout.
        conversation: The messages as text.
        guesses: Values for a parameter inside it, by path (as `inner_slots` has it) and slot, likeliest first.
        rest_of: How a string that has begun goes on.
    """

    def __init__(
        self,
        slot: Slot | None,
        style: Style,
        conversation: str,
        guesses: Callable[[str, Slot], Iterable[Guess]],
        rest_of: Callable[[str], Guess | None],
    ) -> None:
        self._slot, self._style, self._conversation = slot, style, conversation
        self._guesses, self._rest_of = guesses, rest_of

    def parts(self, raw: str) -> Iterator[Part]:
        """The parts that follow `raw`; an empty text: nothing more is known. It ends when the value is whole."""
        place = read(raw)
        written = 0
        while place.open and written < MAX_AHEAD:  # what is counted on has no end
            part = self._next(place)
            yield part
            if not part.text:
                return
            written += len(part.text)
            for char in part.text:
                _read(place, char)

    def _next(self, place: Place) -> Part:
        inner = place.open[-1]
        if place.state == "colon":
            return Part(":" + self._style.gap("colon", VALUE_LEVEL), "schema", KNOWN_KEY)
        if place.state == "key":
            return self._key(place, inner)
        if place.state == "name":
            return self._name(place, inner)
        if place.state == "string":
            return self._string(place, inner)
        if place.state == "literal":
            return self._literal(place, inner)
        if place.state == "value":
            return self._value(place, inner)
        return self._after(place, inner)

    def _key(self, place: Place, inner: Container) -> Part:
        following = self._following(place)
        gap = _left(self._gap(place, inner), place.blank)
        if following is None:
            return self._free_key(place, inner, gap)
        text = gap + quoted(following.name, self._style.ascii_only) + ":" + self._style.gap("colon", VALUE_LEVEL)
        return Part(text, "schema", KNOWN_KEY if following.required else OPTIONAL_KEY, gap + '"')

    def _free_key(self, place: Place, inner: Container, gap: str) -> Part:
        """A key of an object whose keys no schema names."""
        if self._properties(place):
            return Part("", "schema", 0.0)
        key, sure = _counted_on(inner.keys), COUNTED
        if not key and (listed := self._listed_key(inner)):
            key, sure = listed, LISTED
        if key:
            text = gap + quoted(key, self._style.ascii_only) + ":" + self._style.gap("colon", VALUE_LEVEL)
            return Part(text, "copy", sure, gap + '"')
        return Part(gap + '"', "schema", KNOWN_KEY if inner.keys else OPTIONAL_KEY)

    def _listed_key(self, inner: Container) -> str:
        """The key that follows in the conversation's enumeration of them, if there is one."""
        return (next_item(inner.keys[-1], self._conversation) or "") if inner.keys else ""

    def _name(self, place: Place, inner: Container) -> Part:
        for name, _ in self._properties(place):
            whole = quoted(name, self._style.ascii_only)
            if name not in inner.keys and whole.startswith(place.begun):
                rest = whole[len(place.begun) :]
                return Part(rest + ":" + self._style.gap("colon", VALUE_LEVEL), "schema", KNOWN_KEY)
        whole = quoted(_counted_on(inner.keys), self._style.ascii_only)
        if len(whole) > len(place.begun) and len(whole) > 2 and whole.startswith(place.begun):
            return Part(whole[len(place.begun) :] + ":" + self._style.gap("colon", VALUE_LEVEL), "copy", COUNTED)
        return Part("", "schema", 0.0)

    def _value(self, place: Place, inner: Container) -> Part:
        slot = self._inner_slot(place)
        first = inner.bracket == "[" and not inner.item
        gap = _left(self._gap(place, inner), place.blank) if inner.bracket == "[" else ""
        opening = gap + (opening_of(slot, self._style) if slot is not None else "")
        if inner.bracket == "[" and inner.item:
            listed = next_item(_plain(inner.item), self._conversation)
            if listed is not None:
                text = quoted(listed, self._style.ascii_only) if inner.item.startswith('"') else listed
                return Part(gap + text, "copy", LISTED, gap + text[:1])
        if counted := _next_counted(inner):
            return Part(gap + counted, "copy", COUNTED, gap + counted[:1])
        asked = slot is not None and slot.types and (first or inner.bracket == "{")
        for guess in self._guesses(_path(place), slot) if asked and slot is not None else ():
            if text := rendered(guess, self._style):
                return Part(gap + text, guess.source, guess.confidence, opening)
        if inner.item.startswith('"') and not opening.strip():
            opening = gap + '"'
        return Part(opening.rstrip(WHITESPACE) and opening, "schema", 0.9)

    def _string(self, place: Place, inner: Container) -> Part:
        begun = place.begun[1:]
        slot = self._inner_slot(place)
        options = [quoted(str(option)) for option in slot.options] if slot is not None else []
        listed = next_item(_plain(inner.item), self._conversation) if inner.item and inner.bracket == "[" else None
        counted = _next_counted(inner)
        for text in (*options, *([quoted(listed)] if listed else []), *([counted] if counted else [])):
            if text.startswith(place.begun) and text != place.begun:
                return Part(text[len(place.begun) :], "schema" if text in options else "copy", 0.8)
        guess = self._rest_of(begun) if begun else None
        if guess is None:
            sure = ends_after(begun)
            return Part('"' if sure else "", "copy", sure)
        rest = quoted(str(guess.value), self._style.ascii_only)[1:-1]
        end = "" if rest.endswith(GOES_ON_AFTER) else '"'
        return Part(rest + end, guess.source, guess.confidence * 0.8)

    def _literal(self, place: Place, inner: Container) -> Part:
        if inner.bracket == "[" and inner.item:
            listed = next_item(inner.item, self._conversation)
            if listed is not None and listed != place.begun and listed.startswith(place.begun):
                return Part(listed[len(place.begun) :], "copy", 0.8)
        word = next((word for word in ("true", "false", "null") if word.startswith(place.begun)), None)
        if word is not None and word != place.begun:
            return Part(word[len(place.begun) :], "schema", 0.97)
        if not LITERAL.fullmatch(place.begun):
            return Part("", "schema", 0.0)
        ended = self._after(place, replace(inner, before=inner.item, item=place.begun))
        return Part(ended.text, ended.source, ended.confidence * 0.75)

    def _after(self, place: Place, inner: Container) -> Part:
        if "\n" in place.blank:  # before a comma no line ends
            return Part(self._closing(place, inner) + ("}" if inner.bracket == "{" else "]"), "schema", KNOWN_KEY)
        if inner.bracket == "{":
            following = self._following(place)
            if following is not None and (following.required or not inner.keys):
                return Part(",", "schema", KNOWN_KEY if following.required else OPTIONAL_KEY)
            known = bool(self._properties(place))
            if not known and (_counted_on(inner.keys) or self._listed_key(inner)):
                return Part(",", "copy", COUNTS)
            sure = (0.7 if following is not None else 0.95) if known else 0.5
            return Part(self._closing(place, inner) + "}", "schema", sure)
        item = _plain(inner.item)
        if next_item(item, self._conversation) is not None:
            return Part(",", "copy", LISTED)
        if _next_counted(inner):
            return Part(",", "copy", COUNTS)
        return Part(self._closing(place, inner) + "]", "copy", LISTED if item in self._conversation else UNLISTED)

    def _following(self, place: Place) -> Property | None:
        left = [found for found in self._properties(place) if found.name not in place.open[-1].keys]
        return next((found for found in left if found.required), left[0] if left else None)

    def _properties(self, place: Place) -> list[Property]:
        schema = self._schema(place.open)
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return []
        names = required_in(schema)
        return [Property(name, name in names) for name, part in properties.items() if isinstance(part, dict)]

    def _inner_slot(self, place: Place) -> Slot | None:
        inner = place.open[-1]
        schema = self._schema(place.open)
        if inner.bracket == "{":
            name = inner.keys[-1] if inner.keys else ""
            properties = schema.get("properties")
            part = properties.get(name) if isinstance(properties, dict) else None
            return slot_of(name, part, name in required_in(schema)) if isinstance(part, dict) else None
        items = schema.get("items")
        return slot_of(self._slot.name if self._slot else "", items, True) if isinstance(items, dict) else None

    def _schema(self, path: list[Container]) -> Mapping[str, Any]:
        schema: Any = self._slot.schema if self._slot is not None else {}
        for outer in path[:-1]:
            if outer.bracket == "[":
                part = schema.get("items")
            else:
                properties = schema.get("properties")
                part = properties.get(outer.keys[-1]) if isinstance(properties, dict) and outer.keys else None
            schema = part if isinstance(part, dict) else {}
        return cast("Mapping[str, Any]", schema)

    def _gap(self, place: Place, inner: Container) -> str:
        if inner.item or inner.keys:
            return inner.gap if inner.gap and "\n" in inner.gap else " "
        gap = self._style.gap("open", VALUE_LEVEL + len(place.open) - 1)
        return gap if inner.bracket == "{" or self._style.lists else ""

    def _closing(self, place: Place, inner: Container) -> str:
        if not inner.gap or "\n" not in inner.gap:
            return ""
        outer = next((box.gap for box in reversed(place.open[:-1]) if box.gap and "\n" in box.gap), None)
        return _left(outer if outer is not None else self._style.gap("comma", VALUE_LEVEL - 1), place.blank)


def _counted(text: str) -> str:
    """Text with its last number one higher; "" where there is none."""
    found = NUMBERED.fullmatch(text) if len(text) <= MAX_NUMBERED else None
    return f"{found[1]}{int(found[2]) + 1}{found[3]}" if found else ""


def _counted_on(keys: list[str]) -> str:
    """The key that comes next where keys are numbered: after "key1", or after "a4" and "a5"; "" where they are not."""
    if not keys or not (following := _counted(keys[-1])):
        return ""
    if len(keys) > 1:
        return following if _counted(keys[-2]) == keys[-1] else ""
    first = NUMBERED.fullmatch(keys[0])
    return following if first is not None and first[1] and first[2] == "1" else ""


def _next_counted(inner: Container) -> str:
    """The value that comes next where values are numbered as their keys are, or one another's; "" where not."""
    following = _counted(inner.item)
    if not following:
        return ""
    if inner.bracket == "[":
        return following if _counted(inner.before) == inner.item else ""
    if len(inner.keys) < 2 or _counted(inner.keys[-2]) != inner.keys[-1]:
        return ""
    key, value = NUMBERED.fullmatch(inner.keys[-2]), NUMBERED.fullmatch(inner.item)
    return following if key is not None and value is not None and key[2] == value[2] else ""


def _left(gap: str, blank: str) -> str:
    """What is left of a gap that has begun; "" where it has begun otherwise."""
    return gap[len(blank) :] if gap.startswith(blank) else ""


def _plain(item: str) -> str:
    return item[1:-1] if item.startswith('"') else item
