"""Which questions a wave asks, in how many calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.hint import Hint, SlotHint
from ooospec_agents.sidecar import prompts
from ooospec_agents.sidecar.backend import Completion
from ooospec_agents.sidecar.wave import MANY, MAX_PROMPTS, run_wave

CITY, DAYS = Slot("city", ("string",)), Slot("days", ("integer",))
WEATHER, MAIL, STOP = Function("weather", slots=(CITY, DAYS)), Function("mail", slots=(CITY,)), Function("stop")
CATALOG = Catalog((WEATHER, MAIL, STOP), "wave")
MESSAGES = [{"role": "user", "content": "Weather in Oslo?"}]


class Script:
    """Answers by the question's text and keeps the calls."""

    def __init__(self, answer: Callable[[str], str] = lambda prompt: " 0" if "Which" in prompt else " Oslo") -> None:
        self.answer = answer
        self.is_trained = True
        self.calls: list[list[str]] = []

    async def complete(self, prompts: Sequence[str], max_tokens: int) -> list[Completion]:
        assert max_tokens == 32
        self.calls.append(list(prompts))
        return [Completion(self.answer(prompt)) for prompt in prompts]

    async def trained(self) -> bool:
        return self.is_trained

    async def aclose(self) -> None:
        return


async def wave(script: Script, catalog: Catalog = CATALOG, **options: Any) -> Hint | None:
    return await run_wave(script, catalog, MESSAGES, **options)


async def test_all_questions_go_in_one_call_over_one_prefix() -> None:
    script = Script()
    hint = await wave(script)
    shared = prompts.prefix(CATALOG) + prompts.conversation(MESSAGES)
    questions = [
        prompts.function_question(CATALOG),
        prompts.slot_question(WEATHER, CITY),
        prompts.slot_question(WEATHER, DAYS),
        prompts.slot_question(MAIL, CITY),
    ]
    assert script.calls == [[shared + question for question in questions]]
    assert hint is not None
    assert hint.calls[0].name == "weather"
    assert hint.calls[0].slots["city"].value == "Oslo"


async def test_untrained_model_is_shown_an_example() -> None:
    script = Script()
    script.is_trained = False
    await wave(script)
    assert script.calls[0][0].startswith(prompts.prefix(CATALOG, example=True))


PLAY = Function("play_music", slots=(Slot("song", ("string",)), CITY))


def asked_functions(script: Script) -> list[str]:
    (call,) = script.calls
    return [prompt.rpartition("Question: ")[2].split(",")[0] for prompt in call if "Which" not in prompt]


async def test_a_narrow_wave_asks_for_the_likeliest_functions_only() -> None:
    script = Script()
    await wave(script, Catalog((PLAY, MAIL, WEATHER, Function("stop_weather", slots=(CITY,)), STOP)), many=0)
    assert asked_functions(script) == ["play_music", "play_music", "weather", "weather", "stop_weather"]


WHEN = Slot("date", ("string",), "The day, YYYY-MM-DD", required=True)
VISIT = Function("visit", "Plans a visit", slots=(CITY, WHEN))
ON_A_DAY = [{"role": "user", "content": "Plan a visit to Oslo on 2026-05-03."}]


async def test_a_narrow_wave_does_not_ask_for_what_is_sure() -> None:
    script = Script()
    hint = await run_wave(script, Catalog((VISIT,)), ON_A_DAY, no_call_allowed=False, many=0)
    assert [prompt.rpartition("Question: ")[2] for prompt in script.calls[0]] == [
        prompts.slot_question(VISIT, CITY).rpartition("Question: ")[2]
    ]
    assert hint is not None
    assert list(hint.calls[0].slots) == ["city"]


async def test_a_sidecar_of_its_own_is_asked_for_all() -> None:
    script = Script()
    await run_wave(script, Catalog((VISIT,)), ON_A_DAY, no_call_allowed=False)
    assert [len(call) for call in script.calls] == [2]


async def of_the_date(by_itself: bool) -> SlotHint:
    """What a hint says of the day that was named; of a text alone, a sidecar's answer is sure by half."""
    script = Script(lambda prompt: " Oslo" if "city" in prompt.rpartition("Question: ")[2] else " 2026-05-03")
    hint = await run_wave(script, Catalog((VISIT,)), ON_A_DAY, no_call_allowed=False, by_itself=by_itself)
    assert hint is not None
    return hint.calls[0].slots["date"]


async def test_an_answer_may_count_by_itself() -> None:
    assert await of_the_date(by_itself=True) == SlotHint(value="2026-05-03", confidence=0.5)


async def test_an_answer_is_weighed_with_what_the_conversation_says() -> None:
    date = await of_the_date(by_itself=False)
    assert date.value == "2026-05-03"
    assert date.confidence > 0.8


async def test_a_wide_wave_asks_for_all_of_few_slots() -> None:
    script = Script()
    await wave(script, Catalog((PLAY, MAIL, WEATHER, STOP)))
    assert asked_functions(script) == ["play_music", "play_music", "mail", "weather", "weather"]


async def test_named_function_is_not_asked_for() -> None:
    script = Script()
    hint = await wave(script, named="mail", no_call_allowed=False)
    assert [len(call) for call in script.calls] == [1]
    assert hint is not None
    assert (hint.calls[0].name, hint.calls[0].confidence) == ("mail", 1.0)


async def test_unknown_name_asks_nothing() -> None:
    script = Script()
    assert await wave(script, named="other") is None
    assert script.calls == []


async def test_single_function_that_must_be_called_is_not_asked_for() -> None:
    script = Script()
    hint = await wave(script, Catalog((STOP,)), no_call_allowed=False)
    assert script.calls == []
    assert hint is not None
    assert hint.calls[0].name == "stop"


async def test_empty_catalog_asks_nothing() -> None:
    assert await wave(Script(), Catalog()) is None


async def test_only_filters_slots() -> None:
    script = Script()
    await wave(script, only=lambda function, slot: (function.name, slot.name) == ("weather", "days"))
    assert [len(call) for call in script.calls] == [2]


@pytest.mark.parametrize(("slots", "asked"), [(3, 12), (4, 12), (5, 15), (100, MAX_PROMPTS - 1)])
async def test_of_many_slots_the_likeliest_functions_are_asked_for(slots: int, asked: int) -> None:
    functions = tuple(Function(f"f{i}", slots=tuple(Slot(f"s{j}") for j in range(slots))) for i in range(4))
    script = Script()
    await wave(script, Catalog(functions), many=MANY)
    assert [len(call) for call in script.calls] == [1 + asked]


async def test_an_evaluation_asks_for_every_slot_that_a_wave_holds() -> None:
    functions = tuple(Function(f"f{i}", slots=tuple(Slot(f"s{j}") for j in range(12))) for i in range(5))
    script = Script()
    await wave(script, Catalog(functions))
    assert [len(call) for call in script.calls] == [1 + 5 * 12]
