"""A tool parser of vLLM for models that write calls as fenced or bare JSON, and for hermes markup.

Start vLLM with `--tool-parser-plugin ooospec_agents.vllm_plugin.fenced_parser --tool-call-parser ooospec_json
--enable-auto-tool-choice`. Works without anything else of this package.

Written for vLLM 0.32 and 0.33. `structural_tag_model` makes "required" and named tools use the same grammar
as vLLM's hermes parser (`<tool_call>` markup), which is read here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.tool_parsers.abstract_tool_parser import ToolParser, ToolParserManager

from ooospec_agents.formats.call_events import Arguments, CallStart, Event, Text
from ooospec_agents.formats.call_stream import CallStream

PARSER_NAME = "ooospec_json"
"""What to pass as `--tool-call-parser`."""


class FencedJsonToolParser(ToolParser):  # type: ignore[misc]  # vLLM is untyped here
    """Reads calls from fenced JSON, bare JSON and `<tool_call>` markup; one path whether streaming or not.

    Whatever is no call of a bound tool stays text. A call that was cut short (`max_tokens`) keeps its
    unfinished arguments, streaming or not, as in OpenAI's own answers.
    """

    structural_tag_model = "hermes"
    # vLLM tells only such parsers that the output is over. The others lose what they had held back.
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        """One parser a request, as vLLM makes them."""
        super().__init__(tokenizer, tools)
        self._stream: CallStream | None = None

    def adjust_request(self, request: Any) -> Any:
        """Keep special tokens in the text: in some vocabularies `<tool_call>` is one."""
        request = super().adjust_request(request)
        if request.tools and request.tool_choice != "none":
            request.skip_special_tokens = False
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Read a whole output."""
        stream = self._new_stream(request)
        text, calls = "", list[tuple[str, list[str]]]()
        for event in [*stream.feed(model_output), *stream.finish()]:
            if isinstance(event, Text):
                text += event.text
            elif isinstance(event, CallStart):
                calls.append((event.name, []))
            else:
                calls[event.index][1].append(event.text)
        tool_calls = [
            ToolCall(type="function", function=FunctionCall(name=name, arguments="".join(pieces)))
            for name, pieces in calls
        ]
        return ExtractedToolCallInformation(tools_called=bool(tool_calls), tool_calls=tool_calls, content=text or None)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """Read the next piece, `delta_text`; None: nothing is certain yet."""
        if self._stream is None:
            self._stream = self._new_stream(request)
        return _message(self._stream.feed(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """The output is over: text that was held back."""
        return None if self._stream is None else _message(self._stream.finish())

    def get_remaining_unstreamed_args(self) -> str:
        """Nothing: arguments are passed on as they come."""
        return ""

    def _new_stream(self, request: Any) -> CallStream:
        if getattr(request, "tool_choice", None) == "none":
            return CallStream(())
        return CallStream([name for tool in self.tools if (name := _name(tool))])


def _name(tool: Any) -> str:
    return str(getattr(getattr(tool, "function", tool), "name", None) or "")


def _message(events: Iterable[Event]) -> DeltaMessage | None:
    """One delta with at most one entry a call. The first has id and name; arguments are never null."""
    text = ""
    entries: dict[int, DeltaToolCall] = {}
    for event in events:
        if isinstance(event, Text):
            text += event.text
        elif isinstance(event, CallStart):
            entries[event.index] = DeltaToolCall(
                index=event.index,
                id=make_tool_call_id(),
                type="function",
                function=DeltaFunctionCall(name=event.name, arguments=""),
            )
        else:
            _add(entries, event)
    if not text and not entries:
        return None
    parts: dict[str, Any] = {"content": text} if text else {}
    return DeltaMessage(**parts, tool_calls=list(entries.values())) if entries else DeltaMessage(**parts)


def _add(entries: dict[int, DeltaToolCall], piece: Arguments) -> None:
    entry = entries.get(piece.index)
    if entry is None or entry.function is None:
        entries[piece.index] = DeltaToolCall(index=piece.index, function=DeltaFunctionCall(arguments=piece.text))
    else:
        entry.function.arguments = (entry.function.arguments or "") + piece.text


ToolParserManager.register_module(PARSER_NAME, module=FencedJsonToolParser)
