"""Changes to a request that keep its answer right."""

import random
from dataclasses import replace
from typing import Any

import pytest

from ooospec_agents.training.augment import Odds, Pool, add_tools, augment, mask_names, shape, swap_values
from ooospec_agents.training.traces import Call, Request

SEEDS = range(20)


def tool(name: str, described: str = "Tells it.", **slots: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": slots, "required": list(slots)}
    return {"type": "function", "function": {"name": name, "description": described, "parameters": parameters}}


WEATHER = tool("weather", city={"type": "string", "description": "The city."}, days={"type": "integer"})
ASKED = "Rome for 12 days, not Romeo's 120"
REQUEST = Request(
    "a", "s", ({"role": "user", "content": ASKED},), (WEATHER,), (Call("weather", {"city": "Rome", "days": 12}),)
)
POOL = Pool(values={"name": ["Oslo"]}, tools=[tool("weather"), tool("stocks"), tool("news")])


def text(request: Request) -> str:
    return str(request.messages[0]["content"])


def test_a_swapped_value_changes_in_the_conversation_and_in_the_call_alike() -> None:
    swapped = swap_values(REQUEST, POOL, random.Random(1))
    days = swapped.calls[0].arguments["days"]
    assert swapped.calls[0].arguments["city"] == "Oslo"
    assert text(swapped) == f"Oslo for {days} days, not Romeo's 120"
    assert 10 <= days <= 99


def test_a_value_that_the_tools_name_too_stays() -> None:
    described = tool("weather", city={"type": "string", "enum": ["Rome"]})
    request = replace(REQUEST, tools=(described,), calls=(Call("weather", {"city": "Rome"}),))
    assert swap_values(request, POOL, random.Random(0)) == request


def test_a_value_inside_another_stays() -> None:
    request = replace(REQUEST, calls=(Call("weather", {"city": "Rome", "country": "Rome, Italy"}),))
    assert swap_values(request, POOL, random.Random(0)) == request


def test_a_value_that_does_not_stand_there_stays() -> None:
    request = replace(REQUEST, calls=(Call("weather", {"city": "Paris"}),))
    assert swap_values(request, POOL, random.Random(0)) == request


def test_added_tools_never_bear_a_bound_name() -> None:
    for seed in SEEDS:
        names = [one["function"]["name"] for one in add_tools(REQUEST, POOL, random.Random(seed), 3).tools]
        assert sorted(names) == ["news", "stocks", "weather"]


def test_masking_renames_tools_and_calls_alike() -> None:
    masked = mask_names(REQUEST, random.Random(0))
    function = masked.tools[0]["function"]
    # "days" has no description, so its name is all that there is to go by.
    assert list(function["parameters"]["properties"]) == function["parameters"]["required"] == ["arg1", "days"]
    assert masked.calls == (Call(function["name"], {"arg1": "Rome", "days": 12}),)
    assert function["name"] != "weather"


def test_masking_leaves_undescribed_tools_alone() -> None:
    request = replace(REQUEST, tools=(tool("weather", described=""),))
    assert mask_names(request, random.Random(0)) == request


def test_the_same_seed_gives_the_same_request() -> None:
    odds = Odds(swap=0.5, mask=0.5, distract=0.5, no_call=0.5)
    once = [augment(REQUEST, POOL, random.Random(seed), odds) for seed in SEEDS]
    again = [augment(REQUEST, POOL, random.Random(seed), odds) for seed in SEEDS]
    assert once == again
    assert any(one != once[0] for one in once)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("ann@example.org", "email"),
        ("2024-05-06", "date"),
        ("10:30", "time"),
        ("4711", "digits"),
        ("Rome", "name"),
        ("New York", "names"),
        ("AB-12", "code"),
        ("as soon as you can", None),
    ],
)
def test_shapes(value: str, name: str | None) -> None:
    assert shape(value) == name
