"""What all sources together expect of one request: names, slots and values, each with a confidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from ooospec_agents.catalog import Function, Slot
from ooospec_agents.drafting.memory import Memory
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.copying import copy_again, copy_rest, copy_text, copy_verbatim, with_region
from ooospec_agents.drafting.sources.functions import rank_functions
from ooospec_agents.drafting.sources.lexical import LexicalValues
from ooospec_agents.drafting.sources.schema import schema_guesses
from ooospec_agents.formats.style import Style
from ooospec_agents.hint import CallHint, Hint, SlotHint

CALL_PRIOR = 0.7
"""Probability of a call where tools are bound and nothing is known of the target."""
OPTIONAL_PRIOR = {True: 0.9, False: 0.6}
"""Share of optional slots that a target fills, by whether a call is required of it, before any was seen."""
ABSENT = SlotHint(absent=True, confidence=0.85)
"""What a complete hint says of a slot that it does not name."""
TOOLSPEC_COPY = 15
"""Characters that must agree before ToolSpec's n-gram search of five tokens finds a continuation."""


TODAY = 1.5
"""Guesses that a source's confidence counts for before its record in the request outweighs it."""
FIXED = 0.995
"""Probability that the target keeps to its layout for one more piece of fixed text."""
SURE = 0.8
"""Confidence of a hint or an earlier call above which nothing else is looked for until the target disagrees."""
UNHEARD_OF = 0.1
"""Share that is left of a hint's confidence in a function that is not bound, or in a value that its enum lacks."""
MAX_REFERENCE = 24_000
"""Characters of conversation and descriptions in which text is looked for."""


ECHOED = ("type", "properties", "required")
"""What small targets write in place of arguments, of a function without parameters above all: the schema."""
KEPT_UP = 0.8
"""Probability that a target that has begun so goes on so."""
ECHO = '{"type": "object", "properties": {"type": "string", "description": "The"}, "required": []}'
"""How a schema goes that a target makes up."""

Asked = tuple[int, str, str]
"""What is asked for: call, function and slot; with function and slot empty, the call's function."""

_CONFIDENCE = attrgetter("confidence")


class SlotPlan(NamedTuple):
    """A slot that may be written next, and the probability that it is written at all."""

    name: str
    filled: float
    source: str


class Expectation:
    """One request's expectations. Answers are cached until a new hint arrives.

    Args:
        spec: The request.
        memory: What earlier calls taught.
    """

    def __init__(self, spec: RequestSpec, memory: Memory) -> None:
        self.spec = spec
        self.memory = memory
        self.hint: Hint | None = None
        self._guessing = spec.method in ("lexical", "ooospec")
        self._lexical = LexicalValues(spec.conversation)
        self._guesses: dict[Asked, list[Guess]] = {}
        self._sure: dict[Asked, list[Guess]] = {}
        self._now: dict[Asked, list[Guess]] = {}
        self._plans: dict[tuple[int, str], list[SlotPlan]] = {}
        self._record: dict[str, tuple[float, float]] = {}
        self._found: dict[tuple[str, str], Sequence[Guess]] = {}
        self._nested: dict[tuple[str, str], list[Guess]] = {}
        self._lexical_names: list[Guess] | None = None

    def look_ahead(self) -> None:
        """Find now what takes long to find and what most requests will ask for."""
        if self._guessing:
            self._lexical.look_ahead()
            _ = self._elsewhere, self._schemas

    def offer(self, hint: Hint) -> None:
        """Take a hint into account from now on."""
        self.hint = hint
        self._guesses.clear()
        self._sure.clear()
        self._now.clear()
        self._plans.clear()

    @property
    def output(self) -> str:
        """The whole output, if the hint knows it."""
        return self.hint.output if self.hint is not None else ""

    def call_probability(self) -> float:
        """Probability that the output is a call at all."""
        if self.spec.required:
            return 0.99
        memory = self.memory
        seen = (memory.called + CALL_PRIOR * 2) / (memory.answers + 2)
        if self.hint is not None and (self.hint.calls or self.hint.no_call):
            return min(seen, 1 - self.hint.no_call) if self.hint.no_call > 0.5 else max(seen, 0.8)
        return seen

    def names(self, call: int) -> Iterator[Guess]:
        """Functions that the `call`-th call may name, likeliest first."""
        return self._likeliest((call, "", ""))

    def slots(self, name: str, written: Sequence[str], call: int) -> list[SlotPlan]:
        """Slots of a function that are still to be written, in the order expected."""
        plans = self._plans.get((call, name))
        if plans is None:
            plans = self._plans[call, name] = self._all_slots(name, call)
        left = [plan for plan in plans if plan.name not in written]
        if not left and written and written[0] in ECHOED:
            function = self.spec.catalog.function(name)
            if function is None or function.slot(written[0]) is None:
                return [SlotPlan(key, KEPT_UP, "schema") for key in ECHOED if key not in written]
        return left

    def _all_slots(self, name: str, call: int) -> list[SlotPlan]:
        function = self.spec.catalog.function(name)
        hinted = self._hinted(name, call)
        order = list(hinted.slots) if hinted is not None and hinted.complete else []
        if function is not None:
            order += [slot for slot in self.memory.order(name) if function.slot(slot)]
            order += [slot.name for slot in function.slots]
        return [self._slot_plan(function, name, slot, hinted) for slot in dict.fromkeys(order)]

    def parameter_names(self) -> list[str]:
        """Parameter names that a target may write although they are not its function's."""
        slots = (slot.name for function in self.spec.catalog.functions for slot in function.slots)
        return list(dict.fromkeys([*slots, *ECHOED]))

    def values(self, name: str, slot: str, call: int) -> Iterator[Guess]:
        """Values of a slot, likeliest first."""
        return self._likeliest((call, name, slot))

    def _likeliest(self, asked: Asked) -> Iterator[Guess]:
        # What is sure comes without a look at the rest, which is dear and seldom needed then.
        if asked not in self._guesses:
            told: list[Guess] | None = None
            if asked not in self._sure:
                told = self._told(asked)
                known = self._ranked(told, "value" if asked[2] else "name")
                self._sure[asked] = [guess for guess in known[:1] if guess.confidence >= SURE]
            yield from self._today(self._sure[asked])
            self._guesses[asked] = self._find(asked, self._told(asked) if told is None else told)
        if asked not in self._now:
            self._now[asked] = self._today(self._guesses[asked])
        yield from self._now[asked]

    def _today(self, guesses: list[Guess]) -> list[Guess]:
        """Guesses with the confidence that their sources have earned in this very request, likeliest first."""
        if not self._record or not any(guess.source in self._record for guess in guesses):
            return guesses
        earned = {source: (TODAY + right) / (TODAY + expected) for source, (right, expected) in self._record.items()}
        out = [
            Guess(value, min(confidence * earned.get(source, 1.0), 0.995), source)
            for value, confidence, source in guesses
        ]
        if len(out) > 1:
            out.sort(key=_CONFIDENCE, reverse=True)
        return out

    def nested(self, name: str, path: str, slot: Slot) -> list[Guess]:
        """Values of a parameter inside a list or an object, likeliest first.

        Args:
            name: The function.
            path: Its slot and the way from there, such as "items[].name".
            slot: The parameter.
        """
        asked = name, path
        if asked not in self._nested:
            found = self._lexical_values(asked, slot, None) if self._guessing else schema_guesses(slot)
            self._nested[asked] = self._ranked(found, "value")
        return self._nested[asked]

    def copy(self, begun: str, name: str, slot: str, output: str) -> Guess | None:
        """The rest of a string that the target has begun, copied from the conversation or from the output so far."""
        function = self.spec.catalog.function(name)
        known = function.slot(slot) if function else None
        found = self._lexical.finish(known, begun) if self._guessing else None
        shortest = 2 if self._guessing else TOOLSPEC_COPY
        if found is None and len(begun) >= shortest:
            found = copy_rest(begun, self.spec.conversation, shortest) or copy_rest(
                begun, output[-MAX_REFERENCE : max(len(output) - len(begun), 0)], shortest, any_case=False
            )
        if known is None or not self._guessing:
            return found
        return with_region(begun, found, self.spec.conversation, known.description)

    def text(self, written: str, output: str) -> Guess | None:
        """How text outside calls goes on, where earlier text, the conversation or the tools' own goes on so."""
        if not self._guessing:
            return None
        found = copy_text(output, output[:-1]), copy_text(written, self._elsewhere)
        return max(filter(None, found), key=lambda guess: guess.confidence, default=None)

    def verbatim(self, output: str) -> Guess | None:
        """How an output goes on of which nothing else is known: as schemas, the conversation or it itself do."""
        if not self._guessing:
            return None
        found = [copy_verbatim(output, self._schemas), copy_again(output)]
        return max(filter(None, found), key=lambda guess: guess.confidence, default=None)

    @cached_property
    def _elsewhere(self) -> str:
        """Where text outside calls is looked for: the conversation, what the tools say, earlier text."""
        parts = [self.spec.conversation]
        for function in self.spec.catalog.functions:
            parts += [function.name, function.description]
            parts += [f"{slot.name} {slot.description}" for slot in function.slots]
        return "\n".join([*parts, *self.memory.texts])[-MAX_REFERENCE:]

    @cached_property
    def _schemas(self) -> str:
        schemas = [json.dumps(_parameters(function)) for function in self.spec.catalog.functions]
        return "\n".join([ECHO, *schemas])[:MAX_REFERENCE] + "\n" + self.spec.conversation

    def more(self, done: int) -> float:
        """Probability that another call follows `done` finished ones."""
        if not self.spec.parallel or self.spec.named:
            return 0.01
        if self.hint is not None and self.hint.calls:
            return self.hint.calls[done].confidence if done < len(self.hint.calls) else 0.05
        return 0.1

    def judge(self, call: int, name: str, slot: str, raw: str, style: Style) -> bool:
        """Tell the sources whether they were right about a value (with an empty slot: the name); whether all were."""
        asked = (call, name, slot) if slot else (call, "", "")
        guesses = self._guesses.get(asked) or self._sure.get(asked, [])
        kind = "value" if slot else "name"
        judged: set[str] = set()
        all_right = True
        self._nested.clear()
        self._now.clear()
        for guess in guesses:
            if guess.source not in judged:
                judged.add(guess.source)
                right = (guess.value == name) if not slot else rendered(guess, style) == raw
                self.memory.judge(guess.source, kind, guess.confidence, right)
                before = self._record.get(guess.source, (0.0, 0.0))
                self._record[guess.source] = (before[0] + right, before[1] + guess.confidence)
                all_right = all_right and right
        return all_right

    def _told(self, asked: Asked) -> list[Guess]:
        """What the hint and earlier calls say of a name or a value."""
        call, name, slot = asked
        if not slot:
            if self.spec.named:
                return [Guess(self.spec.named, 0.99, "schema")]
            hinted = self.hint.calls[call] if self.hint is not None and call < len(self.hint.calls) else None
            if hinted is None:
                return []
            catalog = self.spec.catalog
            bound = not catalog.functions or catalog.function(hinted.name) is not None
            return [Guess(hinted.name, hinted.confidence * (1.0 if bound else UNHEARD_OF), "hint")]
        said = self._hinted(name, call)
        value = said.slots.get(slot) if said is not None else None
        if value is None or value.absent:
            return self.memory.values(name, slot)
        function = self.spec.catalog.function(name)
        known = function.slot(slot) if function is not None else None
        allowed = known is None or not known.options or value.value in known.options
        hint = Guess(value.value, value.confidence * (1.0 if allowed else UNHEARD_OF), "hint")
        return [hint, *self.memory.values(name, slot)]

    def _find(self, asked: Asked, told: list[Guess]) -> list[Guess]:
        _, name, slot = asked
        found = [*told]
        if not slot:
            return self._ranked(found if self.spec.named else found + self._other_names(), "name")
        function = self.spec.catalog.function(name)
        known = function.slot(slot) if function else None
        if function is not None and known is not None:
            found += self._lexical_values((name, slot), known, function) if self._guessing else schema_guesses(known)
        elif slot == ECHOED[0]:
            found.append(Guess("object", KEPT_UP, "schema"))
        return self._ranked(found, "value")

    def _lexical_values(self, asked: tuple[str, str], slot: Slot, function: Function | None) -> Sequence[Guess]:
        if asked not in self._found:
            ahead = self.spec.guesses.values.get(asked) if self.spec.guesses is not None else None
            self._found[asked] = self._lexical.guesses(slot, function) if ahead is None else ahead
        return self._found[asked]

    def _other_names(self) -> list[Guess]:
        functions = self.spec.catalog.functions
        if self._guessing:
            if self._lexical_names is None:
                ahead = self.spec.guesses
                self._lexical_names = (
                    list(ahead.names)
                    if ahead is not None
                    else rank_functions(self.spec.catalog, self.spec.conversation, self._lexical.fit)
                )
            return self._lexical_names
        earlier = [name for name in self.memory.names() if self.spec.catalog.function(name)]
        found = [Guess(name, 0.6 / (1 + rank), "history") for rank, name in enumerate(earlier[:4])]
        return found + [Guess(function.name, 1 / (len(functions) + 0.05), "schema") for function in functions]

    def _ranked(self, found: Sequence[Guess], kind: str) -> list[Guess]:
        if len(found) < 2:
            return [Guess(g.value, self.memory.trusted(g.source, kind, g.confidence), g.source) for g in found]
        best: dict[str, Guess] = {}
        trusted = self.memory.trusted
        for value, confidence, source in found:
            sure = trusted(source, kind, confidence)
            key = repr(value)
            if key not in best or best[key].confidence < sure:
                best[key] = Guess(value, sure, source)
        return sorted(best.values(), key=_CONFIDENCE, reverse=True)

    def _hinted(self, name: str, call: int) -> CallHint | None:
        if self.hint is None:
            return None
        calls = self.hint.calls
        if call < len(calls) and calls[call].name == name:
            return calls[call]
        return next((item for item in (*self.hint.alternatives, *calls) if item.name == name), None)

    def _slot_plan(self, function: Function | None, name: str, slot: str, hinted: CallHint | None) -> SlotPlan:
        known = function.slot(slot) if function is not None else None
        habit = self.memory.filled(name, slot)
        if hinted is not None and (slot in hinted.slots or hinted.complete):
            said = hinted.slots.get(slot, ABSENT)
            filled = 1 - said.confidence if said.absent else max(said.confidence, 0.8)
            if known is not None and known.required and not hinted.complete:
                filled = max(filled, 0.9)
            return SlotPlan(slot, (filled + habit) / 2 if habit is not None else filled, "hint")
        if known is not None and known.required:
            return SlotPlan(slot, 0.97, "schema")
        if habit is not None:
            return SlotPlan(slot, habit, "history")
        return SlotPlan(slot, OPTIONAL_PRIOR[self.spec.required], "schema")


def _parameters(function: Function) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {slot.name: slot.schema for slot in function.slots},
        "required": [slot.name for slot in function.slots if slot.required],
    }


def rendered(guess: Guess, style: Style) -> str:
    """A guess as the target would write it, or "" where it is no JSON."""
    try:
        return style.render(guess.value)
    except ValueError:
        return ""


def none_filled(plans: Sequence[SlotPlan]) -> float:
    """Probability that none of these slots is written, at least 0.1."""
    out = FIXED
    for plan in plans:
        out *= 1 - min(plan.filled, 0.9)
    return max(out, 0.1)
