"""The calls of one stream of the Responses API: one that was cut is marked before the last event (see `cut_calls`)."""

from __future__ import annotations

from collections.abc import Iterator

from openai.types.responses import (
    ResponseCompletedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
    ResponseOutputItemAddedEvent,
    ResponseStreamEvent,
)

from langchain_ooospec.cut_calls import is_cut, mark_response, spoiler


class ResponseCalls:
    """Follows one stream, event by event."""

    def __init__(self) -> None:
        self._last: ResponseOutputItemAddedEvent | None = None
        self._arguments = ""

    def read(self, event: ResponseStreamEvent) -> Iterator[ResponseStreamEvent]:
        """The event, and before the last one what marks a cut call. vLLM ends a cut answer as a completed one."""
        if isinstance(event, ResponseOutputItemAddedEvent):
            self._last = event
            self._arguments = event.item.arguments if isinstance(event.item, ResponseFunctionToolCall) else ""
        elif isinstance(event, ResponseFunctionCallArgumentsDeltaEvent):
            self._arguments += event.delta
        elif isinstance(event, ResponseCompletedEvent | ResponseIncompleteEvent) and is_cut(event.response):
            if self._last is not None and isinstance(self._last.item, ResponseFunctionToolCall):
                yield ResponseFunctionCallArgumentsDeltaEvent.construct(
                    type="response.function_call_arguments.delta",
                    item_id=self._last.item.id,
                    output_index=self._last.output_index,
                    sequence_number=event.sequence_number,
                    delta=spoiler(self._arguments),
                )
            mark_response(event.response)
        yield event
