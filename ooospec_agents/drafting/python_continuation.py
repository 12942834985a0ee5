"""The draft of calls written as Python."""

from __future__ import annotations

from dataclasses import replace

from ooospec_agents.catalog import Slot
from ooospec_agents.drafting.containers import LITERAL
from ooospec_agents.drafting.cursor import WHITESPACE
from ooospec_agents.drafting.expectation import SlotPlan
from ooospec_agents.drafting.name_first import NameFirstContinuation
from ooospec_agents.drafting.piece import PieceKind, Stop
from ooospec_agents.drafting.sources.copying import GOES_ON_AFTER, ends_after
from ooospec_agents.formats.pythonic import FROM_JSON, QUOTES, TO_JSON, PythonStyle, python_value


class PythonContinuation(NameFirstContinuation):
    """Writes on in Python: keys without quotes, strings in the target's."""

    close = ")"
    _swapped = False

    def _emit(self, kind: PieceKind, text: str, source: str, confidence: float) -> None:
        if self._swapped and kind == "value":
            if "'" in text:
                raise Stop
            text = text.replace('"', "'")
        super()._emit(kind, text, source, confidence)

    def _key_fits(self, name: str, begun: str) -> bool:
        return name.startswith(begun.rstrip(WHITESPACE))

    def _write_key(self, plan: SlotPlan, confidence: float) -> None:
        self._emit("key", plan.name, plan.source, confidence)
        self._written.append(plan.name)
        self._fixed("=")

    def _stray(self, begun: str) -> SlotPlan | None:
        if len(begun) < 2:
            return None
        fitting = (key for key in self._expectation.parameter_names() if key.startswith(begun))
        return next((SlotPlan(key, 0.5, "schema") for key in fitting), None)

    @property
    def _quote(self) -> str:
        return self._style.quote if isinstance(self._style, PythonStyle) else '"'

    def _use_quote(self, quote: str) -> None:
        if isinstance(self._style, PythonStyle) and quote != self._style.quote:
            self._style = replace(self._style, quote=quote, seen=dict(self._style.seen))

    def _slot_value(self, slot: str) -> None:
        self._use_quote(next((char for char in self._skip if char in QUOTES), self._quote))
        super()._slot_value(slot)

    def _beginning(self, slot: Slot) -> str:
        return super()._beginning(slot).replace('"', self._quote)

    def _go_on(self, begun: str, slot: str) -> None:
        """Write a list or an object on to its end; what its schema says comes in double quotes."""
        quote = self._quote
        if quote == '"':
            super()._go_on(begun, slot)
            return
        if '"' in begun:
            raise Stop
        self._use_quote('"')
        self._swapped = True
        super()._go_on(begun.replace("'", '"'), slot)
        self._swapped = False
        self._use_quote(quote)

    def _graft(self, slot: str) -> None:
        begun = self._skip
        if begun[:1] in ("'", '"'):
            self._skip = ""
            self._finish_string(begun[1:], slot)
        elif begun in TO_JSON or begun in FROM_JSON:
            self._skip = ""
        elif begun[:1] in ("[", "{") or LITERAL.fullmatch(begun):
            super()._graft(slot)
        else:
            raise Stop

    def _finish_string(self, string: str, slot: str) -> None:
        if not string:
            raise Stop
        quote = self._quote
        guess = self._expectation.copy(_unescape(string, quote), self._name, slot, self._cursor.text)
        if guess is None:
            self._emit("value", quote, "copy", ends_after(string))
            return
        literal = self._style.string(str(guess.value))
        if literal[0] != quote:
            raise Stop
        self._emit("value", literal[1:-1], guess.source, guess.confidence)
        if literal[:-1].endswith(GOES_ON_AFTER):
            raise Stop
        self._emit("value", quote, guess.source, 0.7)


def _unescape(text: str, quote: str) -> str:
    try:
        return str(python_value(quote + text + quote))
    except ValueError:
        return text
