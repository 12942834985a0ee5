"""One wave: every question of a request in one completions call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.sources.functions import rank_functions
from ooospec_agents.drafting.sources.span_fit import Likely, SpanFit
from ooospec_agents.hint import Hint
from ooospec_agents.sidecar import prompts
from ooospec_agents.sidecar.backend import Completion, SidecarBackend
from ooospec_agents.sidecar.join import MAX_TOKENS, Choice, join, read_choice, weighed

MAX_PROMPTS = 64
"""Questions in one wave, at most."""
MANY = 16
"""Slots from which a request in production asks only for those of the likeliest functions."""
SURE = 0.9
"""Probability of a slot's value from which a sidecar that shares the target's device is not asked for it."""
LIKELY = 3
"""Functions whose slots are asked for then, the likeliest without a model."""

SlotFilter = Callable[[Function, Slot], bool]
"""Whether a slot is worth a question."""


async def run_wave(
    backend: SidecarBackend,
    catalog: Catalog,
    messages: Sequence[Any],
    *,
    named: str = "",
    no_call_allowed: bool = True,
    only: SlotFilter | None = None,
    many: int = MAX_PROMPTS,
    by_itself: bool = False,
) -> Hint | None:
    """Ask for the function and for every slot, and join the answers.

    Args:
        backend: Completes the prompts.
        catalog: The functions bound to the request.
        messages: The conversation as chat messages.
        named: The function that the request forces, or "".
        no_call_allowed: Whether the target may answer in text.
        only: Which slots are asked for; all where None.
        many: With so many slots, those of the likeliest functions only are asked for; by default with more than one
            wave holds. 0, for a sidecar that shares the target's device: however few there are, and not for those of
            which the conversation leaves no doubt.
        by_itself: The sidecar's answers count alone, as what they are weighed with is fitted to them.

    Returns:
        The hint; None where there is nothing to ask or to expect.

    Raises:
        SidecarError: The backend failed.
    """
    forced = bool(named)
    indexes = [i for i, function in enumerate(catalog.functions) if not forced or function.name == named]
    if not indexes:
        return None
    shared = prompts.prefix(catalog, example=not await backend.trained()) + prompts.conversation(messages)
    ask = not forced and (len(indexes) > 1 or no_call_allowed)
    asked = [shared + prompts.function_question(catalog)] if ask else []
    slots = _slots(catalog, indexes, only)
    choice = Choice(dict.fromkeys(indexes, 1.0))
    text = conversation_text(messages)
    fit = SpanFit(text)
    without_model = _without_model(catalog, text, fit) if ask else {}
    if ask and len(indexes) > LIKELY and len(slots) >= many:
        slots = _slots(catalog, _likely(without_model), only)
    lexical = {} if by_itself else {i: fit.of(catalog.functions[i]) for i, _ in slots}
    if many == 0:
        slots = [(index, slot) for index, slot in slots if not _is_sure(lexical.get(index, {}).get(slot.name))]
    slots = slots[: MAX_PROMPTS - len(asked)]
    questions = [prompts.slot_question(catalog.functions[index], slot) for index, slot in slots]
    asked += [shared + question for question in questions]
    completions: list[Completion] = await backend.complete(asked, MAX_TOKENS) if asked else []
    if len(completions) > len(slots):
        choice = weighed(read_choice(completions.pop(0), indexes), without_model, no_call_allowed=no_call_allowed)
    keys = [(index, slot.name) for index, slot in slots]
    return join(catalog, choice, dict(zip(keys, completions, strict=True)), lexical)


def _is_sure(likely: Likely | None) -> bool:
    return likely is not None and any(option.probability >= SURE for option in likely.options.values())


def _without_model(catalog: Catalog, conversation: str, fit: SpanFit) -> dict[int, float]:
    """Each function's probability by what the conversation shares with it."""
    shared = {guess.value: guess.confidence for guess in rank_functions(catalog, conversation, fit)}
    return {index: shared[function.name] for index, function in enumerate(catalog.functions)}


def _likely(without_model: Mapping[int, float]) -> list[int]:
    """Indexes of the likeliest functions, in the catalog's order.

    Of the held-out requests with more functions than that (`dev` and the evaluation sets) 95 % call one of these. No
    model is asked: small ones choose worse than shared words do, and the question would cost a round of its own.
    """
    return sorted(sorted(without_model, key=lambda index: -without_model[index])[:LIKELY])


def _slots(catalog: Catalog, indexes: Sequence[int], only: SlotFilter | None) -> list[tuple[int, Slot]]:
    functions = [(index, catalog.functions[index]) for index in indexes]
    return [
        (index, slot)
        for index, function in functions
        for slot in function.slots
        if only is None or only(function, slot)
    ]
