"""What a scripted target answers: plain data, one reply a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

StreamShape = Literal[
    "plain",
    "burst",
    "first_burst",
    "whole_calls",
    "interleaved",
    "same_index",
    "no_arguments",
    "empty_arguments",
    "repeated_name",
    "content_and_call",
    "null_content",
    "split_surrogates",
    "null_function",
    "no_index",
]
"""How the tool calls of a streamed answer are cut into deltas.

"plain": a role chunk, the name, then pieces of the arguments.
"burst": name and arguments as two entries of one index in one delta, as speculative decoding makes them.
"first_burst": the same in the very first chunk.
"whole_calls": every call whole, all in one delta.
"interleaved": the pieces of several calls by turns.
"same_index": every call under index 0, told apart by its id.
"no_arguments", "empty_arguments": the key absent, or "".
"repeated_name": id and name again on the last delta.
"content_and_call": text and call in one delta.
"null_content": `content: null` on each delta.
"split_surrogates": a character outside the basic plane cut between its two `\\u` escapes.
"null_function": a stray entry with `function: null`.
"no_index": entries without an index.
"""
STREAM_SHAPES: tuple[StreamShape, ...] = get_args(StreamShape)


@dataclass(frozen=True)
class Call:
    """One tool call of a reply. `arguments` is a JSON object, or the literal text to send, good or bad."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""

    def arguments_text(self) -> str:
        """The arguments as they stand on the wire."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Reply:
    """One answer of a scripted target.

    Attributes:
        content: The answer's text, or None.
        calls: Its tool calls, in order.
        reasoning: Reasoning text, sent in the field `reasoning` as vLLM does.
        finish_reason: By default "tool_calls" where there are calls, else "stop".
        shape: How a stream of it is cut.
        delay_s: Wait before the first byte, in seconds.
        chunk_delay_s: Wait before each chunk of a stream, in seconds.
        wait_for_hint_s: Hold the answer until a hint for this request came, at most this long, in seconds.
        status: HTTP status; anything but 200 answers an error body with `error` as its message.
        error: The message of an error body.
        break_after: Close the connection after so many chunks of a stream (0: before any byte of any answer).
        body: Send this text instead of a well-formed body (not in a stream).
    """

    content: str | None = None
    calls: tuple[Call, ...] = ()
    reasoning: str | None = None
    finish_reason: str | None = None
    shape: StreamShape = "plain"
    delay_s: float = 0.0
    chunk_delay_s: float = 0.0
    wait_for_hint_s: float = 0.0
    status: int = 200
    error: str = "scripted failure"
    break_after: int | None = None
    body: str | None = None

    def reason(self) -> str:
        """The finish reason that the answer carries."""
        return self.finish_reason or ("tool_calls" if self.calls else "stop")

    def token_count(self) -> int:
        """A stand-in for the number of output tokens: four characters are one token."""
        text = (self.content or "") + (self.reasoning or "")
        text += "".join(call.name + call.arguments_text() for call in self.calls)
        return max(1, len(text) // 4)


@dataclass(frozen=True)
class Received:
    """One request that a scripted server received. `body` is the parsed JSON, or None where it was none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
