"""How each wire format is read and written on."""

from __future__ import annotations

from ooospec_agents.drafting.continuation import Continuation
from ooospec_agents.drafting.cursor import OPENING_MARKS, Cursor
from ooospec_agents.drafting.expectation import Expectation
from ooospec_agents.drafting.memory import commonest
from ooospec_agents.drafting.mistral_cursor import MistralCursor
from ooospec_agents.drafting.name_first import MarkedContinuation, NameFirstContinuation
from ooospec_agents.drafting.python_continuation import PythonContinuation
from ooospec_agents.drafting.python_cursor import PythonCursor
from ooospec_agents.drafting.xml_continuation import XmlContinuation
from ooospec_agents.drafting.xml_cursor import XmlCursor
from ooospec_agents.formats.mistral import MISTRAL, MISTRAL_ARRAY
from ooospec_agents.formats.pythonic import Pythonic
from ooospec_agents.formats.qwen_xml import QwenXml
from ooospec_agents.formats.style import Style
from ooospec_agents.formats.wire import LLAMA3, WireFormat


def cursor_for(wire_format: WireFormat, style: Style, named: str = "") -> Cursor:
    """A reader of a wire format.

    Args:
        wire_format: The format.
        style: Learns the layout that is met.
        named: The function's name where the text does not tell it.
    """
    if isinstance(wire_format, QwenXml):
        return XmlCursor(style)
    if isinstance(wire_format, Pythonic):
        return PythonCursor(style, separators=wire_format.separators)
    if wire_format in (MISTRAL, MISTRAL_ARRAY):
        return MistralCursor(style)
    if wire_format is LLAMA3:
        return Cursor(style, marks=(*OPENING_MARKS, *LLAMA3.openings), separators=LLAMA3.separators)
    return Cursor(style, bare=wire_format.bare, named=named)


def continuation_for(cursor: Cursor, expectation: Expectation, wire_format: WireFormat, floor: float) -> Continuation:
    """What writes on from a reader of the same wire format.

    Args:
        cursor: Where the committed text stands.
        expectation: What is expected.
        wire_format: The format expected before the target has shown its own.
        floor: Joint probability under which nothing more is drafted.
    """
    if isinstance(wire_format, QwenXml):
        return XmlContinuation(cursor, expectation, wire_format, floor)
    if isinstance(wire_format, Pythonic):
        return PythonContinuation(cursor, expectation, wire_format, floor)
    if isinstance(cursor, MistralCursor):
        if _listed(cursor, expectation, wire_format):
            return Continuation(cursor, expectation, MISTRAL_ARRAY, floor)
        return NameFirstContinuation(cursor, expectation, MISTRAL, floor)
    kind = MarkedContinuation if wire_format is LLAMA3 else Continuation
    return kind(cursor, expectation, wire_format, floor)


def _listed(cursor: MistralCursor, expectation: Expectation, wire_format: WireFormat) -> bool:
    """Whether a target behind Mistral's parser writes a list: as it does now, did before, or is expected to."""
    if cursor.listed is not None:
        return cursor.listed
    known = commonest(expectation.memory.openings)
    return known[0].endswith("[") if known else wire_format is MISTRAL_ARRAY
