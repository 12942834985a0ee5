"""The join: a wave's answers become one hint."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ooospec_agents.catalog import Catalog, Slot
from ooospec_agents.drafting.sources.span_fit import Likely
from ooospec_agents.drafting.sources.wanted import about, class_of
from ooospec_agents.hint import CallHint, Hint, SlotHint
from ooospec_agents.sidecar.answers import ABSENT, read_answer
from ooospec_agents.sidecar.backend import Completion
from ooospec_agents.sidecar.prompts import NO_CALL
from ooospec_agents.sidecar.slots import weighed_slot

MAX_TOKENS = 32
"""New tokens of one answer, at most."""
SAY, LEAST = 0.3, 0.01
"""What power of a function's probability by the sidecar counts beside that by shared words, and its least: of powers
tried on held-out requests, more gains where functions are like those of its training, and loses where they are not."""
MAX_ALTERNATIVES = 16
"""Functions beside the expected one for which a hint brings guesses."""


@dataclass(frozen=True)
class Choice:
    """The function question's answer: a probability for each function's index, and for no call."""

    functions: Mapping[int, float] = field(default_factory=dict)
    no_call: float = 0.0

    def ranked(self) -> list[int]:
        """Indexes of the functions, the likeliest first."""
        return sorted(self.functions, key=lambda index: -self.functions[index])


def _likeliest_option(completion: Completion, slot: Slot) -> SlotHint | None:
    """The likeliest of a slot's options and of none of them, whatever was written; None where all are unlikely."""
    options = slot.options or (True, False)
    answers = [f" {option if isinstance(option, str) else json.dumps(option)}" for option in options]
    likely = {answer: _probability(completion, answer) for answer in (*answers, f" {ABSENT}")}
    best = max(likely, key=lambda answer: likely[answer])
    # What was written may name an option in words of its own, "Celsius" for "celsius".
    written = read_answer(completion.text, slot)
    if written is not None and completion.probability >= likely[best]:
        return written.model_copy(update={"confidence": min(completion.probability, 1.0)})
    read = read_answer(best, slot) if likely[best] > 0.0 else None
    return None if read is None else read.model_copy(update={"confidence": min(likely[best], 1.0)})


def read_choice(completion: Completion, indexes: Iterable[int]) -> Choice:
    """The probabilities of the functions and of no call, read off the answer and the likeliest tokens beside it."""
    functions = {index: _probability(completion, f" {index}") for index in indexes}
    return Choice(functions, _probability(completion, f" {NO_CALL}"))


def weighed(choice: Choice, shared: Mapping[int, float], *, no_call_allowed: bool) -> Choice:
    """The choice, with what shared words say of each function weighed in: they choose better than a small model does.

    Args:
        choice: The sidecar's own. Where it says nothing of any function, nor of no call, it stays as it is.
        shared: A probability for each of its functions, by index, from words alone.
        no_call_allowed: Whether the target may call nothing.
    """
    if choice.no_call == 0.0 and not any(choice.functions.values()):
        return choice
    own = {index: max(said, LEAST) ** SAY for index, said in choice.functions.items()}
    parts = {index: part * shared[index] for index, part in own.items()}
    no_call = min(choice.no_call, 1.0) if no_call_allowed else 0.0
    share = (1.0 - no_call) / sum(parts.values())
    return Choice({index: share * part for index, part in parts.items()}, no_call)


def _probability(completion: Completion, answer: str) -> float:
    """Probability of another answer than the one given: along the given tokens, then off at a likely one."""
    if not completion.tokens or not completion.top:
        given = completion.text.strip() == answer.strip()
        return completion.probability if given else 0.0
    logprob, done = 0.0, ""
    for token, own, top in zip(completion.tokens, completion.token_logprobs, completion.top, strict=False):
        if done == answer:
            # " 1" is over here, unless " 12" was meant.
            share = math.exp(min(own, 0.0))
            return math.exp(logprob) * (share if _ends(token) else 1 - share)
        if token and answer.startswith(done + token):
            logprob, done = logprob + own, done + token
            continue
        others = [other for other in top if other.strip() and answer.startswith(done + other)]
        best = max(others, key=len, default=None)
        if best is None:
            return 0.0
        # After a "1" beside the given answer, nothing is known of what follows: 1, 10 and 11 share it.
        share = 1.0 if done + best == answer else 0.1
        return share * math.exp(min(logprob + top[best], 0.0))
    return math.exp(min(logprob, 0.0)) if done == answer else 0.0


def _ends(token: str) -> bool:
    """Whether a token after an answer is its end: nothing, a newline or a special token."""
    return not token.strip() or token.lstrip(" ").startswith(("\n", "<"))


def join(
    catalog: Catalog,
    choice: Choice,
    answers: Mapping[tuple[int, str], Completion],
    lexical: Mapping[int, Mapping[str, Likely]] | None = None,
) -> Hint:
    """One hint of all answers.

    Args:
        catalog: The functions asked about.
        choice: Which of them is called.
        answers: The slots' completions by function index and slot name.
        lexical: By function index and slot name, what is likely without a model: it is weighed with the answers.
    """
    calls: dict[int, CallHint] = {}
    for index in choice.ranked():
        function = catalog.functions[index]
        slots = {}
        for slot in function.slots:
            completion = answers.get((index, slot.name))
            if completion is None:
                continue
            read = _slot_hint(completion, slot)
            likely = lexical[index].get(slot.name) if lexical is not None and index in lexical else None
            if likely is not None:
                read = weighed_slot(read, likely, class_of(slot, about(slot)))
            if read is not None:
                slots[slot.name] = read
        confidence = choice.functions[index]
        if confidence > 0.0 or slots:
            calls[index] = CallHint(name=function.name, confidence=confidence, slots=slots)
    best = next(iter(calls), None)
    expected = best is not None and 0.0 < choice.functions[best] >= choice.no_call
    first = (calls.pop(best),) if best is not None and expected else ()
    others = tuple(calls.values())[:MAX_ALTERNATIVES]
    return Hint(calls=first, alternatives=others, no_call=min(choice.no_call, 1.0), source="sidecar")


def _slot_hint(completion: Completion, slot: Slot) -> SlotHint | None:
    if (slot.options or slot.types == ("boolean",)) and completion.top:
        return _likeliest_option(completion, slot)
    read = read_answer(completion.text, slot)
    if read is None:
        return None
    # An answer that was cut off can be right up to there only.
    whole = len(completion.token_logprobs) < MAX_TOKENS
    return read.model_copy(update={"confidence": completion.probability * (1.0 if whole else 0.5)})
