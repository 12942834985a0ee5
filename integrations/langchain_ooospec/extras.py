"""What a vLLM target sends beyond OpenAI's own fields: the report of acceleration, and reasoning text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import openai


def report(answer: Any) -> dict[str, Any] | None:
    """The report in an answer or a stream's chunk, or None."""
    found = _field(answer, "ooospec")
    if found is None and isinstance(answer, Mapping):
        # Streams with a response format wrap each chunk in an event.
        found = _field(answer.get("chunk"), "ooospec")
    return found if isinstance(found, dict) else None


def reasoning(message: Any) -> str | None:
    """The reasoning text of a message or delta, or None. vLLM's field is `reasoning`; others' is longer."""
    for name in ("reasoning", "reasoning_content"):
        text = _field(message, name)
        if isinstance(text, str) and text:
            return text
    return None


def _field(holder: Any, name: str) -> Any:
    if isinstance(holder, Mapping):
        return holder.get(name)
    if isinstance(holder, openai.BaseModel):
        return (holder.model_extra or {}).get(name)
    return None
