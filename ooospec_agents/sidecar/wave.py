"""One wave: every question of a request in one completions call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.hint import Hint
from ooospec_agents.sidecar import prompts
from ooospec_agents.sidecar.backend import Completion, SidecarBackend
from ooospec_agents.sidecar.join import MAX_TOKENS, Choice, join, read_choice

MAX_PROMPTS = 64
"""Questions in one wave; a request with more asks for the function first."""
LIKELY = 0.1
"""Functions of this probability or above have their slots asked for, where the function is asked first."""
MAX_LIKELY = 3
"""Functions whose slots are asked for, at most, where the function is asked first."""

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
    function_first: bool = False,
) -> Hint | None:
    """Ask for the function and for every slot, and join the answers.

    Args:
        backend: Completes the prompts.
        catalog: The functions bound to the request.
        messages: The conversation as chat messages.
        named: The function that the request forces, or "".
        no_call_allowed: Whether the target may answer in text.
        only: Which slots are asked for; all where None.
        function_first: Ask for the function in a call of its own, then for the likely functions' slots only:
            slower on a device of its own, cheaper where the sidecar shares the target's.

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
    if ask and (function_first or len(slots) >= MAX_PROMPTS):
        (answer,) = await backend.complete(asked, MAX_TOKENS)
        choice, asked = read_choice(answer, indexes, no_call_allowed), []
        slots = _slots(catalog, choice.likely(LIKELY, MAX_LIKELY), only)
    slots = slots[: MAX_PROMPTS - len(asked)]
    questions = [prompts.slot_question(catalog.functions[index], slot) for index, slot in slots]
    asked += [shared + question for question in questions]
    completions: list[Completion] = await backend.complete(asked, MAX_TOKENS) if asked else []
    if len(completions) > len(slots):
        choice = read_choice(completions.pop(0), indexes, no_call_allowed)
    keys = [(index, slot.name) for index, slot in slots]
    return join(catalog, choice, dict(zip(keys, completions, strict=True)))


def _slots(catalog: Catalog, indexes: Sequence[int], only: SlotFilter | None) -> list[tuple[int, Slot]]:
    functions = [(index, catalog.functions[index]) for index in indexes]
    return [
        (index, slot)
        for index, function in functions
        for slot in function.slots
        if only is None or only(function, slot)
    ]
