"""The draft of calls that begin with the function's name."""

from __future__ import annotations

from ooospec_agents.drafting.continuation import Continuation
from ooospec_agents.drafting.cursor import ARGUMENTS_LEVEL, Cursor
from ooospec_agents.drafting.expectation import Expectation
from ooospec_agents.drafting.piece import Stop
from ooospec_agents.formats.name_first import NameFirst


class MarkedContinuation(Continuation):
    """Writes on where a mark stands between calls and nothing after the last."""

    def _consistent(self, text: str) -> bool:
        if not text:
            return not self._skip
        return super()._consistent(text) or self._skip.startswith(text)


class NameFirstContinuation(MarkedContinuation):
    """Writes on where a call is a name, and then its arguments.

    Args:
        cursor: Where the committed text stands: outside a call until its name has ended.
        expectation: What is expected.
        wire_format: The format expected before the target has shown its own.
        floor: Joint probability under which nothing more is drafted.
    """

    def __init__(self, cursor: Cursor, expectation: Expectation, wire_format: NameFirst, floor: float) -> None:
        super().__init__(cursor, expectation, wire_format, floor)
        self._after_name = wire_format.after_name

    def _opening(self) -> str | None:
        openings = {*self._expectation.memory.openings, self._format.opening, *self._format.openings}
        for text in sorted(openings, key=len, reverse=True):
            at = self._skip.rfind(text) if text else -1
            if at >= 0 and self._may_be_name(self._skip[at + len(text) :]):
                self._skip = self._skip[at:]
                return text
        return super()._opening()

    def _may_be_name(self, begun: str) -> bool:
        functions = self._expectation.spec.catalog.functions
        return any((function.name + self._after_name).startswith(begun) for function in functions)

    def _open_call(self) -> None:
        self._name, self._named, self._argued, self._written = "", False, False, []
        self._name_value()

    def _name_value(self) -> None:
        guesses = self._expectation.names(self._call)
        guess = next((it for it in guesses if f"{it.value}{self._after_name}".startswith(self._skip)), None)
        if guess is None:
            raise Stop
        self._name, self._named = str(guess.value), True
        self._emit("name", self._name, guess.source, guess.confidence)
        self._fixed(self._after_name)
        self._keys(ARGUMENTS_LEVEL, first=True)

    def _after_arguments(self) -> None:
        self._call += 1
        self._after_call()
