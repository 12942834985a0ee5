"""The draft as text: what is expected to follow the committed text, piece by piece, from wherever it stands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from ooospec_agents.catalog import Slot
from ooospec_agents.drafting.containers import LITERAL, GoingOn
from ooospec_agents.drafting.cursor import ARGUMENTS_LEVEL, CALL_LEVEL, WHITESPACE, Cursor
from ooospec_agents.drafting.expectation import FIXED, Expectation, SlotPlan, none_filled, rendered
from ooospec_agents.drafting.memory import commonest
from ooospec_agents.drafting.piece import Piece, PieceWriter, Stop
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.copying import GOES_ON_AFTER, ends_after
from ooospec_agents.drafting.sources.schema import opening_of
from ooospec_agents.drafting.texts import ANNOUNCED, ANNOUNCES, word_by_word
from ooospec_agents.formats.style import Gap, Style, quoted, unescape
from ooospec_agents.formats.wire import WireFormat

NUMERIC = {"integer", "number"}
LITTLE = 4
"""Characters up to which a continuation is hardly worth a draft: then text that went on from here before counts."""
WHOLE_NUMBER = 0.4
"""Probability that a number that nobody expected ends after the digits that it has begun with."""


class Continuation(PieceWriter):
    """Writes on from a cursor until the joint probability falls under a floor.

    Args:
        cursor: Where the committed text stands.
        expectation: What is expected.
        wire_format: The format expected before the target has shown its own.
        floor: Joint probability under which nothing more is drafted.
    """

    comma, close = ",", "}"
    """What stands between two arguments, and after the last."""

    def __init__(self, cursor: Cursor, expectation: Expectation, wire_format: WireFormat, floor: float) -> None:
        super().__init__(floor, cursor.partial)
        self._cursor, self._expectation, self._format = cursor, expectation, wire_format
        self._style = cursor.style
        open_call = bool(cursor.calls) and cursor.inside
        self._call = len(cursor.calls) - open_call
        self._name = cursor.call.name if open_call else ""
        self._named = bool(self._name)
        self._argued = bool(cursor.call.arguments_key) if open_call else False
        self._written = [slot for slot, _ in cursor.call.arguments] if open_call else []
        self._taken = {raw for _, raw in cursor.call.arguments} if open_call else set()

    def pieces(self) -> list[Piece]:
        """The expected pieces, in order."""
        with contextlib.suppress(Stop):
            self._go()
        ends = bool(self._pieces) and self._pieces[-1].kind == "stop"
        if not ends and sum(len(piece.text) for piece in self._pieces) <= LITTLE:
            with contextlib.suppress(Stop):
                self._verbatim()
        return self._pieces

    def _go(self) -> None:
        cursor = self._cursor
        if cursor.anchor == "outside":
            (self._after_call if self._call else self._before_call)()
        elif cursor.anchor == "key":
            self._keys(cursor.level, cursor.first_key)
        elif cursor.anchor == "value":
            self._value_of(cursor.level, cursor.key)
        else:
            self._after(cursor.level)

    def _verbatim(self) -> None:
        """Go on as text that has gone on from here before, word by word."""
        guess = self._expectation.verbatim(self._cursor.text)
        if guess is None:
            return
        text = "".join(piece.text for piece in self._pieces)
        if self._pieces and self._joint > guess.confidence and not guess.value.startswith(text):
            return
        self._write_anew("")
        for word, sure in word_by_word(guess):
            self._emit("text", word, guess.source, sure)

    def _gap(self, gap: Gap, level: int) -> None:
        expected = self._style.gap(gap, level)
        if self._skip:
            blank = self._skip[: len(self._skip) - len(self._skip.lstrip(WHITESPACE))]
            if len(blank) < len(self._skip) or not expected.startswith(blank):
                expected = self._other_gap(gap, level, blank, whole=len(blank) < len(self._skip))
        source = "dialect" if (gap, level) in self._style.seen else "schema"
        self._emit("fixed", expected, source, FIXED)

    def _other_gap(self, gap: Gap, level: int, blank: str, *, whole: bool) -> str:
        """A gap that does not begin as expected: what follows is laid out as it is."""
        self._style = self._style.copy()
        if gap == "open" and not whole:
            blank = self._style.indented(level, blank)
        self._style.learn(gap, level, blank)
        return blank

    def _fixed(self, text: str, confidence: float = FIXED) -> None:
        self._emit("fixed", text, "schema", confidence)

    def _before_call(self) -> None:
        opening = None if self._cursor.broken else self._opening()
        if opening is None:
            self._text()
            return
        self._fixed(opening, self._expectation.call_probability())
        self._open_call()

    def _text(self) -> None:
        """Go on with text outside calls, word by word, or with the call that it announces."""
        written, self._skip = self._skip, ""
        opening = next(iter(self._expectation.memory.openings), self._format.opening)
        if written.endswith(ANNOUNCES) and opening.strip() and not self._cursor.broken:
            self._fixed(opening, ANNOUNCED)
            self._open_call()
            return
        guess = self._expectation.text(written, self._cursor.text)
        if guess is None:
            raise Stop
        for word, sure in word_by_word(guess):
            self._emit("text", word, guess.source, sure)

    def _opening(self) -> str | None:
        known = commonest(self._expectation.memory.openings)[:4]
        candidates = [*known, self._format.opening, *self._format.openings]
        for text in candidates:
            if text.startswith(self._skip) and (text or not self._skip):
                return text
        last = self._skip[self._skip.rfind("\n") + 1 :]
        for text in candidates:
            if last and len(last) >= 2 and text.startswith(last):
                self._skip = last
                return text
        return None

    def _open_call(self) -> None:
        self._name, self._named, self._argued, self._written = "", False, False, []
        self._fixed("{")
        if self._format.bare:
            self._name, self._named = self._expectation.spec.named, True
            self._keys(ARGUMENTS_LEVEL, first=True)
        else:
            self._keys(CALL_LEVEL, first=True)

    def _after_call(self) -> None:
        more = self._expectation.more(self._call)
        endings = commonest(self._expectation.memory.endings)[:4]
        ending = next((text for text in endings if self._consistent(text)), self._format.closing)
        follow = self._format.between
        if self._consistent(follow) and (more >= 0.5 or not self._consistent(ending)):
            self._fixed(follow, max(more, 0.3))
            self._open_call()
            return
        if not self._consistent(ending):
            self._before_call()
            raise Stop
        self._emit("end", ending, "dialect" if endings else "schema", 1 - more)
        if not self._skip and not self.beyond:
            self._pieces.append(Piece("stop", "", "schema", self._joint * 0.9))
        raise Stop

    def _consistent(self, text: str) -> bool:
        return text.startswith(self._skip)

    def _keys(self, level: int, first: bool) -> None:
        (self._call_key if level == CALL_LEVEL else self._slot_key)(first)

    def _call_key(self, first: bool) -> None:
        begun = self._skip.lstrip(WHITESPACE)
        key = self._format.arguments_key
        if begun[:3] in ('"ar', '"pa'):
            key = "arguments" if begun[1] == "a" else "parameters"
            named = True
        else:
            named = self._named
        if named and self._argued:
            raise Stop
        self._gap("open" if first else "comma", CALL_LEVEL)
        self._fixed(f'"{key if named else "name"}":')
        if named:
            self._value_of(CALL_LEVEL, key)
        else:
            self._value_of(CALL_LEVEL, "name")

    def _value_of(self, level: int, key: str) -> None:
        self._gap("colon", level)
        if level == ARGUMENTS_LEVEL:
            self._slot_value(key)
        elif key == "name":
            self._name_value()
        elif key in ("arguments", "parameters"):
            self._argued = True
            self._fixed("{")
            self._keys(ARGUMENTS_LEVEL, first=True)
        else:
            raise Stop

    def _name_value(self) -> None:
        guess = self._first_fit(self._expectation.names(self._call))
        if guess is None:
            raise Stop
        self._emit("name", rendered(guess, self._style), guess.source, guess.confidence)
        self._name, self._named = str(guess.value), True
        self._after(CALL_LEVEL)

    def _first_fit(self, guesses: Iterable[Guess]) -> Guess | None:
        # A span of the conversation seldom fills two slots: one that another slot has taken is the last resort.
        spare = None
        for guess in guesses:
            text = rendered(guess, self._style_for(guess))
            if text and self._whole(text).startswith(self._skip):
                if guess.source != "lexical" or text not in self._taken:
                    return guess
                spare = spare or guess
        return spare if spare is None else Guess(spare.value, spare.confidence * 0.3, spare.source)

    def _whole(self, text: str) -> str:
        """A value with what tells that it has ended, where that is no part of it."""
        return text

    def _style_for(self, guess: Guess) -> Style:
        # A list that the target has begun shows its layout.
        if self._skip.startswith("[") and isinstance(guess.value, list | tuple):
            style = self._style.copy()
            style.learn_value(self._skip)
            return style
        return self._style

    def _slot_key(self, first: bool) -> None:
        plans = self._plans()
        begun = self._skip.lstrip(WHITESPACE)
        fitting = [plan for plan in plans if self._key_fits(plan.name, begun)]
        likely = next((plan for plan in fitting if plan.filled >= 0.5), None)
        plan = likely or (fitting[0] if fitting and (begun or not first) else None) or self._stray(begun)
        if plan is None:
            if not first or begun:
                raise Stop
            self._gap("empty", ARGUMENTS_LEVEL)
            self._fixed(self.close, none_filled(plans))
            self._after_arguments()
            return
        self._gap("open" if first else "comma", ARGUMENTS_LEVEL)
        self._write_key(plan, plan.filled if first else FIXED)
        self._value_of(ARGUMENTS_LEVEL, plan.name)

    def _key_fits(self, name: str, begun: str) -> bool:
        return quoted(name).startswith(begun.rstrip(WHITESPACE + ":"))

    def _write_key(self, plan: SlotPlan, confidence: float) -> None:
        self._emit("key", quoted(plan.name, self._style.ascii_only), plan.source, confidence)
        self._written.append(plan.name)
        self._fixed(":")

    def _stray(self, begun: str) -> SlotPlan | None:
        # The target writes a key that its function does not have: another function's, or one that it made up.
        if len(begun) < 3:
            return None
        if len(begun) > 2 and begun.rstrip(WHITESPACE + ":").endswith('"'):
            return SlotPlan(unescape(begun.rstrip(WHITESPACE + ":")[1:-1]), FIXED, "copy")
        fitting = (key for key in self._expectation.parameter_names() if f'"{key}"'.startswith(begun))
        return next((SlotPlan(key, 0.5, "schema") for key in fitting), None)

    def _plans(self) -> list[SlotPlan]:
        return self._expectation.slots(self._name, self._written, self._call)

    def _slot_value(self, slot: str) -> None:
        if slot not in self._written:
            self._written.append(slot)
        # Behind the last piece a value is of no use but for how it begins.
        guess = None if self.beyond else self._first_fit(self._expectation.values(self._name, slot, self._call))
        if guess is not None and (self._skip or self._joint * guess.confidence >= self._floor):
            text = rendered(guess, self._style_for(guess))
            self._taken.add(text)
            self._emit("value", text, guess.source, guess.confidence)
        elif not self._skip:
            self._open_value(slot)
        else:
            self._graft(slot)
        self._after(ARGUMENTS_LEVEL)

    def _open_value(self, slot: str) -> None:
        known = self._slot(slot)
        beginning = self._beginning(known) if known is not None else ""
        if self.beyond:
            self._emit("value", beginning, "schema", 1.0)
        elif beginning[:1] in "[{" and beginning:
            self._emit("value", beginning[0], "schema", 0.97)
            self._go_on(beginning[0], slot)
        elif beginning:
            self._emit("value", beginning, "schema", 0.97)
        elif self._pieces and not self._pieces[-1].text.strip() and not (known and set(known.types) & NUMERIC):
            self._pieces.pop()  # most tokenizers join a space to the word that follows, but not to a number
        raise Stop

    def _beginning(self, slot: Slot) -> str:
        return opening_of(slot, self._style)

    def _slot(self, name: str) -> Slot | None:
        function = self._expectation.spec.catalog.function(self._name)
        return function.slot(name) if function else None

    def _go_on(self, begun: str, slot: str) -> None:
        """Write a list or an object on to its end."""
        expectation = self._expectation
        going_on = GoingOn(
            self._slot(slot),
            self._style.nested(),
            expectation.spec.conversation,
            lambda path, inner: expectation.nested(self._name, slot + path, inner),
            lambda string: expectation.copy(unescape(string), self._name, slot, self._cursor.text),
        )
        for part in going_on.parts(begun):
            if not part.text:
                raise Stop
            if part.opening and self._joint * part.confidence < self._floor:
                self._emit("value", part.opening, "schema", 0.9)
                raise Stop
            self._emit("value", part.text, part.source, part.confidence)

    def _graft(self, slot: str) -> None:
        """Finish a value that nobody expected: a string from the conversation, a list or object by its schema."""
        begun, self._skip = self._skip, ""
        if begun[:1] in ("[", "{"):
            self._go_on(begun, slot)
        elif begun.startswith('"'):
            self._finish_string(begun[1:], slot)
        elif LITERAL.fullmatch(begun):
            self._joint *= WHOLE_NUMBER if begun[-1].isdigit() else FIXED
        else:
            raise Stop

    def _finish_string(self, string: str, slot: str) -> None:
        if not string:
            raise Stop
        guess = self._expectation.copy(unescape(string), self._name, slot, self._cursor.text)
        if guess is None:
            self._emit("value", '"', "copy", ends_after(string))
            return
        rest = quoted(str(guess.value), self._style.ascii_only)[1:-1]
        self._emit("value", rest, guess.source, guess.confidence)
        if rest.endswith(GOES_ON_AFTER):
            raise Stop
        self._emit("value", '"', guess.source, 0.7)

    def _after(self, level: int) -> None:
        if level == CALL_LEVEL:
            self._after_member()
            return
        plans = self._plans()
        following = next((plan for plan in plans if plan.filled >= 0.5), None)
        if following is not None and not self._skip:
            self._fixed(self.comma, following.filled)
            self._keys(ARGUMENTS_LEVEL, first=False)
            return
        self._gap("close", ARGUMENTS_LEVEL)
        self._fixed(self.close, none_filled(plans) if not self._skip else FIXED)
        self._after_arguments()

    def _after_arguments(self) -> None:
        if self._format.bare:
            self._call += 1
            self._after_call()
        else:
            self._after_member()

    def _after_member(self) -> None:
        if not (self._named and self._argued) and not self._skip:
            self._fixed(",")
            self._keys(CALL_LEVEL, first=False)
            return
        self._gap("close", CALL_LEVEL)
        self._emit("end", "}", "schema", FIXED)
        self._call += 1
        self._after_call()
