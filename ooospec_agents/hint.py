"""The hint: what a predictor expects the target to call. Plain data, and the only thing that crosses to the target."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticSerializationError

MAX_HINT_BYTES = 64 * 1024
"""Largest JSON text of a hint that is read, in bytes."""
REPORT_HEADER = "x-ooospec-report"
"""HTTP header by which a client asks for the report where it does not know yet whether the target is ours."""
MAX_CALLS = 32
"""Most calls, and most alternatives, in one hint."""
MAX_OUTPUT_CHARS = 32 * 1024
"""Most characters of an expected output."""
MAX_SLOTS = 128
"""Most slots in one call."""
MAX_NESTING = 16
"""Most lists and objects around what stands in a value."""

Confidence = Annotated[float, Field(ge=0.0, le=1.0)]


class HintError(ValueError):
    """A hint that cannot be read. The message says why."""


def _can_be_written(value: Any, room: int = MAX_NESTING) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return True
    return room > 0 and all(_can_be_written(item, room - 1) for item in value)


class SlotHint(BaseModel):
    """One slot's expected value, with the probability that the target writes exactly this.

    `absent` means that the target is expected to leave the slot out; `value` is then None and meaningless.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: Any = None
    confidence: Confidence = 0.5
    absent: bool = False

    @field_validator("value")
    @classmethod
    def _writable(cls, value: Any) -> Any:
        if not _can_be_written(value):
            msg = f"a value has NaN or infinity in it, or is nested deeper than {MAX_NESTING}"
            raise ValueError(msg)
        return value


class CallHint(BaseModel):
    """One expected call: a function name and what is known of its slots, by slot name.

    `complete` means that slots not named here are expected to be left out, and the others to be written in this order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=256)
    confidence: Confidence = 0.5
    slots: Annotated[dict[str, SlotHint], Field(max_length=MAX_SLOTS)] = Field(default_factory=dict)
    complete: bool = False


class Hint(BaseModel):
    """What a predictor expects of one request.

    Attributes:
        calls: The expected calls, in order. Empty with `no_call` 1.0: the target is expected to answer in text.
        alternatives: Guesses for other functions, used when the target turns out to call one of those.
        no_call: Probability that the target calls nothing.
        output: The whole output as text, where it is known from before (the same request asked again, a run replayed):
            drafted as it stands for as long as the target agrees; where it departs, the calls count.
        source: Who predicted: "sidecar", "client", ... (a label for reports).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: Annotated[tuple[CallHint, ...], Field(max_length=MAX_CALLS)] = ()
    alternatives: Annotated[tuple[CallHint, ...], Field(max_length=MAX_CALLS)] = ()
    no_call: Confidence = 0.0
    output: str = Field(default="", max_length=MAX_OUTPUT_CHARS)
    source: str = Field(default="hint", max_length=32)

    @field_validator("calls", "alternatives", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def to_json(self) -> str:
        """The hint as compact JSON text; `Hint.parse` reads it back. Half a character in a value becomes "?"."""
        try:
            return self.model_dump_json(exclude_defaults=True)
        except PydanticSerializationError:
            data = json.dumps(self.model_dump(exclude_defaults=True), ensure_ascii=False, separators=(",", ":"))
            return data.encode("utf-8", "replace").decode()

    @classmethod
    def parse(cls, text: str | bytes) -> Hint:
        """Read a hint from untrusted JSON text.

        Raises:
            HintError: The text is too long, is not JSON, or does not have a hint's shape.
        """
        size = len(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        if size > MAX_HINT_BYTES:
            msg = f"hint of {size} bytes refused: at most {MAX_HINT_BYTES} are read"
            raise HintError(msg)
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "hint"
            msg = f"hint refused at {where}: {first['msg']}"
            raise HintError(msg) from None

    @classmethod
    def of_call(cls, name: str, arguments: dict[str, Any], confidence: float = 0.9, source: str = "hint") -> Hint:
        """A hint of one whole call, every value equally sure."""
        slots = {key: SlotHint(value=value, confidence=confidence) for key, value in arguments.items()}
        return cls(calls=(CallHint(name=name, confidence=confidence, slots=slots, complete=True),), source=source)
