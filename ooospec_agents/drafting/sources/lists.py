"""Lists and objects that stand in a conversation: written out as such, or as an enumeration in prose."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from ooospec_agents import strict_json
from ooospec_agents.drafting.sources.spans import NUMBER_WORDS, Span, number_of

MAX_LITERAL = 600
"""Characters of a list or an object that is written out, at most."""
MAX_FOUND, MAX_DEPTH = 16, 8
MAX_TRIED = 64
"""Brackets looked at: a text of brackets alone must not take long."""
OPENING = re.compile(r"[\[({]")
CLOSING = {"[": "]", "(": ")", "{": "}"}
SEPARATOR = re.compile(r"['\"`”]?(?:,? (?:and|or|&) |, ?)['\"`“]?")
ITEMS = frozenset({"quoted", "number", "identifier", "code", "proper", "proper part", "url", "email", "date"})
WORDS = re.compile(r"\b[\w'-]{1,30}(?:, [\w'-]{1,30}){1,12},? (?:and|or) [\w'-]{1,30}")
BETWEEN_WORDS = re.compile(r",? (?:and|or) |, ")


def find_lists(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Lists and objects, each a span with a value.

    Args:
        text: The conversation.
        spans: What was found in it so far.
    """
    written = list(_literals(text))[-MAX_FOUND:]
    yield from written
    covered = [(span.start, span.end) for span in written]
    items = sorted((span for span in spans if span.kind in ITEMS), key=lambda span: (span.start, -span.end))
    chains = [*_chains(text, [span for span in items if span.kind != "proper" or not _is_joined(span, items)])]
    for chain in chains[-MAX_FOUND:]:
        if not any(start < chain[0].start < end for start, end in covered):
            kind = chain[0].kind if chain[0].kind in ("quoted", "number") else "name"
            values = [_number(span.text) if kind == "number" else span.text for span in chain]
            yield Span(
                text[chain[0].start : chain[-1].end], f"list {kind}", chain[0].start, chain[-1].end, value=values
            )
    for match in [*WORDS.finditer(text)][-MAX_FOUND:]:
        yield Span(match[0], "list word", *match.span(), value=BETWEEN_WORDS.split(match[0]))


def _is_joined(span: Span, items: Sequence[Span]) -> bool:
    """Whether a name is two, which are items themselves."""
    return any(other.kind == "proper part" and span.start <= other.start < span.end for other in items)


def _chains(text: str, items: Sequence[Span]) -> Iterator[list[Span]]:
    """Items between which nothing but a separator stands, two or more."""
    chain: list[Span] = []
    for item in items:
        if chain and item.start < chain[-1].end:
            continue
        if chain and not SEPARATOR.fullmatch(text, chain[-1].end, item.start):
            if len(chain) > 1:
                yield chain
            chain = []
        chain.append(item)
    if len(chain) > 1:
        yield chain


def _literals(text: str) -> Iterator[Span]:
    at = 0
    for _ in range(MAX_TRIED):
        match = OPENING.search(text, at)
        if match is None:
            return
        at = match.end()
        end = _closed(text, match.start())
        value = _read(text[match.start() : end]) if end else None
        if isinstance(value, list | dict) and value:
            yield Span(
                text[match.start() : end],
                "object" if isinstance(value, dict) else "list",
                match.start(),
                end,
                value=value,
            )
            at = end


def _closed(text: str, start: int) -> int:
    """Where a bracket is closed, or 0."""
    wanted: list[str] = []
    quote = ""
    for at in range(start, min(start + MAX_LITERAL, len(text))):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in CLOSING:
            wanted.append(CLOSING[char])
            if len(wanted) > MAX_DEPTH:
                return 0
        elif wanted and char == wanted[-1]:
            wanted.pop()
            if not wanted:
                return at + 1
        elif char in "])}":
            return 0
    return 0


def _read(text: str) -> Any:
    """A list or an object as JSON, as Python or as JavaScript writes it; None for anything else."""
    swapped = text.replace("'", '"') if '"' not in text else text
    for form in (text, swapped):
        try:
            return strict_json.loads(form)
        except (ValueError, RecursionError):
            continue
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of escapes and operators that a text has by chance
            value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, Warning, MemoryError, RecursionError):
        return None
    if isinstance(value, tuple):
        value = list(value)
    return value if isinstance(value, list | dict) and _is_json(value) else None


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _number(text: str) -> int | float | str:
    number = number_of(text)
    return NUMBER_WORDS.get(text.lower(), text) if number is None else number
