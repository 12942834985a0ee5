"""The span predictor: a catalog and messages go in, a hint comes out."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.sources.functions import rank_functions
from ooospec_agents.drafting.sources.lexical import LexicalValues
from ooospec_agents.drafting.sources.schema import schema_guesses
from ooospec_agents.hint import CallHint, Hint, SlotHint
from ooospec_agents.predictor import model
from ooospec_agents.predictor.decode import Found, Scores, candidates, likely_starts, mix
from ooospec_agents.predictor.encoder import Encoder, Heard, Memory, ask, hear, memorise
from ooospec_agents.predictor.pieces import Piece, Pieces
from ooospec_agents.predictor.quick import quicken

MAX_CATALOGS = 64
"""Catalogs whose texts are kept."""
MAX_SLOTS = 64
"""Slots of one request that are asked for."""
MAX_ALTERNATIVES = 8
"""Functions beside the likeliest whose slots are asked for."""
ALTERNATIVE_SLOTS = 24
"""Slots of theirs, at most: the likelier functions first."""
MAX_VALUES = 6
"""Values of a slot that are weighed against guesses."""
SOURCE = "span"


@dataclass
class Prepared:
    """What is known of a function without any request; its slots only once they were asked for."""

    function: Function
    memory: Memory
    slots: list[tuple[Slot, Piece, Memory]] | None = None


@dataclass(frozen=True)
class Said:
    """What is said of one slot: that it is left out, and values pointed at and guessed, with probabilities."""

    slot: Slot
    absent: float
    pointed: list[Found]
    guessed: list[Found]


class SpanPredictor:
    """Predicts with one trained encoder. Not for several threads at a time.

    Args:
        encoder: The encoder.
        pieces: Its tokenizer.
        settings: Its calibration.
    """

    def __init__(self, encoder: Encoder, pieces: Pieces, settings: model.Calibration) -> None:
        self._encoder, self._pieces, self._settings = encoder, pieces, settings
        self._prepared: OrderedDict[str, list[Prepared]] = OrderedDict()

    @classmethod
    def from_folder(cls, folder: Path, *, quick: bool = True) -> SpanPredictor:
        """The predictor that `ooospec train --predictor span` wrote.

        Args:
            folder: Its folder.
            quick: Compute in eight bits where this torch can.
        """
        encoder = model.load(folder)
        if quick:
            quicken(encoder)
        return cls(encoder, Pieces(folder), model.load_calibration(folder))

    def prepare(self, catalog: Catalog) -> None:
        """Read a catalog's texts ahead of the requests that bind it."""
        with torch.inference_mode():
            for prepared in self._functions(catalog):
                self._slots(prepared)

    def predict(
        self, catalog: Catalog, messages: Sequence[Any], *, named: str = "", no_call_allowed: bool = True
    ) -> Hint | None:
        """The hint for a request; None where no function is bound.

        Args:
            catalog: The functions bound to the request.
            messages: The conversation as chat messages.
            named: The function that the request forces, or "".
            no_call_allowed: Whether the target may answer in text.
        """
        with torch.inference_mode():
            return self._predict(catalog, messages, named, no_call_allowed and not named)

    def _predict(self, catalog: Catalog, messages: Sequence[Any], named: str, no_call_allowed: bool) -> Hint | None:
        functions = self._functions(catalog)
        if named:
            functions = [one for one in functions if one.function.name == named]
        if not functions:
            return None
        conversation = self._pieces.conversation(messages)
        heard = hear(self._encoder, conversation.ids)
        shares, no_call = self._choose(catalog, functions, heard, messages, no_call_allowed)
        order = sorted(range(len(functions)), key=lambda index: -shares[index])
        asked, room = order[:1], ALTERNATIVE_SLOTS
        for index in order[1 : 1 + MAX_ALTERNATIVES]:
            room -= len(functions[index].function.slots)
            if room >= 0:
                asked.append(index)
        slots = self._slot_hints(conversation, heard, [functions[index] for index in asked], messages)
        calls = [
            CallHint(name=functions[index].function.name, confidence=shares[index], slots=said)
            for index, said in zip(asked, slots, strict=True)
        ]
        expected = shares[order[0]] >= no_call
        first, others = (calls[:1], calls[1:]) if expected else ([], calls)
        return Hint(calls=tuple(first), alternatives=tuple(others), no_call=no_call, source=SOURCE)

    def _choose(
        self,
        catalog: Catalog,
        functions: Sequence[Prepared],
        heard: Heard,
        messages: Sequence[Any],
        no_call_allowed: bool,
    ) -> tuple[list[float], float]:
        """A probability for each function, and for no call."""
        if len(functions) == 1 and not no_call_allowed:
            return [0.99], 0.0
        said = [
            (logit + self._settings.lexical * words) / self._settings.temperature
            for _, logit, words in self._logits(catalog, functions, heard, messages)
        ]
        if no_call_allowed:
            said.append(self._encoder.nothing(heard.states[0]).item() / self._settings.temperature)
        shares = torch.tensor(said).softmax(0).tolist()
        return shares[: len(functions)], shares[len(functions)] if no_call_allowed else 0.0

    def choice_logits(self, catalog: Catalog, messages: Sequence[Any]) -> list[tuple[str, float, float]]:
        """Each function's name, its logit, and the logarithm of what shared words give it. For calibration."""
        with torch.inference_mode():
            heard = hear(self._encoder, self._pieces.conversation(messages).ids)
            return self._logits(catalog, self._functions(catalog), heard, messages)

    def _logits(
        self, catalog: Catalog, functions: Sequence[Prepared], heard: Heard, messages: Sequence[Any]
    ) -> list[tuple[str, float, float]]:
        states = ask(self._encoder, heard, [one.memory for one in functions])
        logits = self._encoder.chosen(states.flatten(1)).squeeze(1).tolist()
        shared = {guess.value: guess.confidence for guess in rank_functions(catalog, conversation_text(messages))}
        names = [one.function.name for one in functions]
        return [
            (name, logit, math.log(max(shared.get(name, 0.0), 1e-4))) for name, logit in zip(names, logits, strict=True)
        ]

    def slot_candidates(
        self, catalog: Catalog, messages: Sequence[Any], name: str
    ) -> list[tuple[Slot, float, list[Found], list[Found]]]:
        """For each slot of a function: that it is left out, and values pointed at and guessed. For calibration."""
        functions = [one for one in self._functions(catalog) if one.function.name == name]
        conversation = self._pieces.conversation(messages)
        with torch.inference_mode():
            heard = hear(self._encoder, conversation.ids)
            said = self._said(conversation, heard, functions, LexicalValues(conversation_text(messages)))
        return [(one.slot, one.absent, one.pointed, one.guessed) for one in said]

    def _slot_hints(
        self, conversation: Piece, heard: Heard, functions: Sequence[Prepared], messages: Sequence[Any]
    ) -> list[dict[str, SlotHint]]:
        said = self._said(conversation, heard, functions, LexicalValues(conversation_text(messages)))
        hints = [(one.slot.name, self._hint(one)) for one in said]
        out, at = [], 0
        for function in functions:
            count = len(function.function.slots)
            out.append({name: hint for name, hint in hints[at : at + count] if hint is not None})
            at += count
        return out

    def _said(
        self, conversation: Piece, heard: Heard, functions: Sequence[Prepared], lexical: LexicalValues
    ) -> list[Said]:
        flat = [slot for one in functions for slot in self._slots(one)][:MAX_SLOTS]
        if not flat:
            return []
        states = ask(self._encoder, heard, [memory for _, _, memory in flat])
        outcomes = self._encoder.outcome(states.flatten(1)).softmax(1).tolist()
        said = []
        for (slot, text, memory), asked, (absent, span, other) in zip(flat, states, outcomes, strict=True):
            start, ends = self._places(heard, memory, asked, conversation, text)
            found = candidates(Scores((absent, span, other), start, ends), slot, conversation, text)
            pointed = [Found(one.value, span * one.probability) for one in found[:MAX_VALUES]]
            guesses = [*lexical.guesses(slot), *schema_guesses(slot)]
            said.append(Said(slot, absent, pointed, [Found(one.value, one.confidence) for one in guesses]))
        return said

    def _places(
        self, heard: Heard, memory: Memory, asked: torch.Tensor, conversation: Piece, text: Piece
    ) -> tuple[list[float], dict[int, list[float]]]:
        """Probabilities of a span's start, and of its end for each likely start."""
        encoder, talk = self._encoder, heard.states
        near = torch.tensor(self._pieces.nearness(conversation, text))
        start = encoder.starts(asked[0], encoder.offers(0, talk, memory.states), near).softmax(0).tolist()
        likely = likely_starts(start, conversation, text)
        first = torch.tensor(likely)
        begun = torch.cat([talk, memory.states])[first]
        offers = encoder.offers(1, talk, memory.states)
        ends = encoder.ends(asked[1], begun, first >= len(talk), offers).softmax(1).tolist()
        return start, dict(zip(likely, ends, strict=True))

    def _hint(self, said: Said) -> SlotHint | None:
        found = mix(said.pointed, said.guessed, self._settings.guesses)
        nothing = found.value is None
        if not said.slot.required and (nothing or said.absent > max(found.probability, 0.5)):
            return SlotHint(absent=True, confidence=self._settings.absent(said.absent))
        return None if nothing else SlotHint(value=found.value, confidence=self._settings.value(found.probability))

    def _functions(self, catalog: Catalog) -> list[Prepared]:
        found = self._prepared.get(catalog.id)
        if found is None:
            texts = [self._pieces.function(function).ids for function in catalog.functions]
            memories = memorise(self._encoder, texts) if texts else []
            found = [Prepared(one, memory) for one, memory in zip(catalog.functions, memories, strict=True)]
            self._prepared[catalog.id] = found
            if len(self._prepared) > MAX_CATALOGS:
                self._prepared.popitem(last=False)
        else:
            self._prepared.move_to_end(catalog.id)
        return found

    def _slots(self, prepared: Prepared) -> list[tuple[Slot, Piece, Memory]]:
        if prepared.slots is None:
            slots = prepared.function.slots
            texts = [self._pieces.slot(prepared.function, slot) for slot in slots]
            memories = memorise(self._encoder, [text.ids for text in texts]) if texts else []
            prepared.slots = list(zip(slots, texts, memories, strict=True))
        return prepared.slots
