"""Wire formats: how targets write calls, and which one a request will be answered in."""

from __future__ import annotations

from ooospec_agents.formats.choice import choose_format
from ooospec_agents.formats.mistral import MISTRAL, MISTRAL_ARRAY, MISTRAL_JSON
from ooospec_agents.formats.pythonic import LFM2, OLMO3, PYTHONIC
from ooospec_agents.formats.qwen_xml import MIMO, QWEN3_CODER
from ooospec_agents.formats.style import FLAT, INDENTED, Profile, Style
from ooospec_agents.formats.wire import (
    ARGUMENTS,
    ARRAY,
    FENCED,
    HERMES,
    LLAMA3,
    PLAIN,
    Kind,
    Segment,
    WireFormat,
)

__all__ = [
    "FLAT",
    "FORMATS",
    "INDENTED",
    "Kind",
    "Profile",
    "Segment",
    "Style",
    "WireFormat",
    "choose_format",
]

JSON_FORMATS = (HERMES, FENCED, PLAIN, ARRAY, ARGUMENTS, LLAMA3, MISTRAL_ARRAY, MISTRAL_JSON)
NAME_FIRST_FORMATS = (MISTRAL, PYTHONIC, LFM2, OLMO3, QWEN3_CODER, MIMO)
FORMATS: dict[str, WireFormat] = {item.name: item for item in (*JSON_FORMATS, *NAME_FIRST_FORMATS)}
