"""The draft of calls written as Qwen3-Coder's XML."""

from __future__ import annotations

from ooospec_agents.catalog import Slot
from ooospec_agents.drafting.containers import LITERAL
from ooospec_agents.drafting.cursor import ARGUMENTS_LEVEL, WHITESPACE
from ooospec_agents.drafting.expectation import FIXED, SlotPlan, none_filled
from ooospec_agents.drafting.name_first import NameFirstContinuation
from ooospec_agents.drafting.piece import Stop
from ooospec_agents.drafting.sources.copying import GOES_ON_AFTER, ends_after
from ooospec_agents.formats.qwen_xml import FUNCTION_END, PARAMETER, PARAMETER_END

ENDED = 0.6
"""Probability that a value of which no source knows more has ended where it might have."""


class XmlContinuation(NameFirstContinuation):
    """Writes on in XML: a tag for each parameter, strings as they are."""

    _around = ""

    @property
    def _tail(self) -> str:
        return self._around + PARAMETER_END

    def _go(self) -> None:
        if self._cursor.anchor == "after":
            self._slot_key(first=False)
        else:
            super()._go()

    def _slot_key(self, first: bool) -> None:
        plans = self._plans()
        begun = self._skip.lstrip(WHITESPACE)
        closing = begun.startswith(FUNCTION_END[:2])
        plan = None if closing else self._next_slot(plans, begun)
        if plan is None:
            self._gap("empty" if first else "close", ARGUMENTS_LEVEL)
            self._emit("end", FUNCTION_END, "schema", FIXED if closing else none_filled(plans))
            self._after_arguments()
            return
        self._gap("open" if first else "comma", ARGUMENTS_LEVEL)
        self._fixed(PARAMETER, plan.filled)
        self._emit("key", plan.name, plan.source, FIXED)
        self._written.append(plan.name)
        self._fixed(">")
        self._value_of(ARGUMENTS_LEVEL, plan.name)

    def _next_slot(self, plans: list[SlotPlan], begun: str) -> SlotPlan | None:
        name = begun.removeprefix(PARAMETER) if begun.startswith(PARAMETER) else ""
        fitting = [plan for plan in plans if plan.name.startswith(name)]
        likely = next((plan for plan in fitting if plan.filled >= 0.5), None)
        if likely is not None or len(begun) < 2:
            return likely
        return fitting[0] if fitting else self._stray(name)

    def _stray(self, begun: str) -> SlotPlan | None:
        fitting = (key for key in self._expectation.parameter_names() if begun and key.startswith(begun))
        return next((SlotPlan(key, 0.5, "schema") for key in fitting), None)

    def _value_of(self, level: int, key: str) -> None:
        expected = self._style.gap("colon", level)
        if self._skip and self._style.profile.colon:
            self._around = "\n" if self._skip.startswith("\n") else ""
        else:
            self._around = expected
        if self._around != expected:
            self._style = self._style.copy()
            self._style.learn("colon", level, self._around)
        self._fixed(self._around)
        self._slot_value(key)

    def _whole(self, text: str) -> str:
        return text + self._tail

    def _after(self, level: int) -> None:
        """A value has been written; its tag has not been closed."""
        self._fixed(self._tail)
        self._slot_key(first=False)

    def _beginning(self, slot: Slot) -> str:
        return "" if list(slot.types) == ["string"] and not slot.options else super()._beginning(slot)

    def _open_value(self, slot: str) -> None:
        known = self._slot(slot)
        if known is not None and self._beginning(known):
            super()._open_value(slot)
        raise Stop  # a break before a value is often one token with the tag before it

    def _graft(self, slot: str) -> None:
        begun, self._skip = self._skip, ""
        closed = next((size for size in range(len(self._tail), 0, -1) if begun.endswith(self._tail[:size])), 0)
        if closed:
            self._joint *= ENDED if closed == 1 else 1.0
            self._skip = begun[len(begun) - closed :]
        elif begun[:1] in ("[", "{"):
            self._go_on(begun, slot)
        elif LITERAL.fullmatch(begun):
            self._joint *= ENDED
        else:
            self._finish_string(begun, slot)

    def _finish_string(self, string: str, slot: str) -> None:
        guess = self._expectation.copy(string, self._name, slot, self._cursor.text)
        if guess is None:
            self._joint *= ends_after(string)
            return
        rest = str(guess.value)
        self._emit("value", rest, guess.source, guess.confidence)
        if rest.endswith(GOES_ON_AFTER):
            raise Stop
        self._joint *= 0.7
