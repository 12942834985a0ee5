"""Longer dialogues made of requests of one turn, which most data sets have: what fits weights must see both."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ooospec_agents.training.traces import Call, Request

ASKED = ("Sure, could you give me the {}?", "What is the {}?", "Of course. Please provide the {}.")
GIVEN = ("{value}", "It is {value}.", "The {slot} is {value}.")
DONE = ("Done. Anything else?", "Here you are.", "That is done.")
AGAIN = ("And {}?", "Now the same for {}.", "What about {}?")

WISHES = (
    "I want to {}.",
    "Can you help me {}?",
    "I need to {}",
    "Please {}.",
    "Could you {} for me?",
    "I would like to {}.",
)
AT_ONCE = (" For {value}.", " The {slot} is {value}.", " {slot}: {value}.", ' It is for "{value}".')
QUESTIONS = (
    "Sure. What is the {}?",
    "Could you please provide me with the {}?",
    "May I know the {}?",
    "And what is the {}?",
    "Please provide the {}.",
    "Got it. Can you tell me your {}?",
    "Alright. What's the {}?",
    "Great, and the {}?",
)
ANSWERS = (
    "{value}",
    "{value}.",
    "It's {value}.",
    "It is {value}.",
    "The {slot} is {value}.",
    "My {slot} is {value}.",
    "Sure, the {slot} is {value}.",
    "Sure, it's {value}.",
)
SEVERAL = ("My {slot} is {value}", "The {slot} is {value}", "{slot} {value}", "the {slot} is {value}")
BETWEEN = (" and ", ", and ", ", ")
AGREED = ("Yes, that's correct.", "Yes.", "Yes, please go ahead.")
HUMP = re.compile(r"([a-z])([A-Z])")
MAX_TOLD = 60
"""Characters of a value that is told in an answer, at most."""


def told(call: Call, request: Request, other: Request, rng: random.Random) -> Request | None:
    """A dialogue in which the values of a call are told one after another; None where it has none to tell.

    Args:
        call: The call.
        request: The request whose functions are bound.
        other: A request that may have been met before.
        rng: Draws what is said.
    """
    slots = [(slot, value) for slot, value in call.arguments.items() if _can_be_told(value)]
    if not slots:
        return None
    rng.shuffle(slots)
    messages = _met(other, rng) if rng.random() < 0.3 and other.calls else []
    at_once = rng.choice((0, 0, 1, 2))
    wish = rng.choice(WISHES).format(spoken(call.name))
    wish += "".join(rng.choice(AT_ONCE).format(slot=spoken(slot), value=value) for slot, value in slots[:at_once])
    messages.append({"role": "user", "content": wish})
    slots = slots[at_once:]
    while slots:
        if rng.random() < 0.15 and len(slots) > 1:
            messages += _looked_up(*slots.pop(0), rng)
            continue
        now = slots[: rng.choice((1, 1, 1, 2, 2, 3))]
        slots = slots[len(now) :]
        question = rng.choice(QUESTIONS).format(" and ".join(spoken(slot) for slot, _ in now))
        messages.append({"role": "assistant", "content": question})
        form = rng.choice(ANSWERS if len(now) == 1 else SEVERAL)
        answers = [form.format(slot=spoken(slot), value=value) for slot, value in now]
        answer = answers[0] if len(now) == 1 else rng.choice(BETWEEN).join(answers) + rng.choice((".", ""))
        messages.append({"role": "user", "content": answer})
    if rng.random() < 0.2:
        messages.append({"role": "assistant", "content": "Just to confirm, is that correct?"})
        messages.append({"role": "user", "content": rng.choice(AGREED)})
    return replace(request, messages=tuple(messages), calls=(call,))


def spoken(name: str) -> str:
    """A name as it is said: "userName" and "user_name" are "user name"."""
    return HUMP.sub(r"\1 \2", name).replace("_", " ").replace(".", " ").lower()


def _can_be_told(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and 0 < len(str(value)) <= MAX_TOLD


def _looked_up(slot: str, value: Any, rng: random.Random) -> list[Mapping[str, Any]]:
    """A value that a tool gives, as JSON or as Python writes it."""
    function = {"name": rng.choice(("GetInfo", "Authenticate", "Search")), "arguments": '{"query": "find it"}'}
    result = {slot: value}
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"function": function}]},
        {"role": "tool", "content": rng.choice((json.dumps(result), str(result)))},
    ]


def longer(at: int, request: Request, other: Request, rng: random.Random) -> Request:
    """The request as the end of a longer dialogue of one of three kinds, in turn."""
    if at % 3 == 1 and request.calls[0].arguments:
        return asked_for(request, rng)
    return again(request, other, rng) if at % 3 == 2 else after(other, request, rng)


def asked_for(request: Request, rng: random.Random) -> Request:
    """The request, and then a value of its call asked for and given."""
    slot, value = rng.choice(list(request.calls[0].arguments.items()))
    named = slot.replace("_", " ")
    answer = {"role": "assistant", "content": rng.choice(ASKED).format(named)}
    given = {"role": "user", "content": rng.choice(GIVEN).format(slot=named, value=value)}
    return replace(request, messages=(*request.messages, answer, given))


def after(earlier: Request, request: Request, rng: random.Random) -> Request:
    """The request, after another one was met; the functions of both are bound, in any order."""
    if not earlier.calls or earlier.calls[0].name == request.calls[0].name:
        return request
    tools = [*request.tools, *earlier.tools]
    rng.shuffle(tools)
    return replace(request, messages=(*_met(earlier, rng), *request.messages), tools=tuple(tools))


def again(request: Request, other: Request, rng: random.Random) -> Request:
    """The request was met, and the same is wanted for a value of another one."""
    values = [value for call in other.calls for value in call.arguments.values()] or [other.id]
    wish = {"role": "user", "content": rng.choice(AGAIN).format(rng.choice(values))}
    return replace(request, messages=(*_met(request, rng), wish))


def _met(request: Request, rng: random.Random) -> list[Mapping[str, Any]]:
    """The messages of a request, its call, the result and, mostly, an answer."""
    call = request.calls[0]
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return [
        *request.messages,
        {"role": "assistant", "content": "", "tool_calls": [{"function": function}]},
        {"role": "tool", "content": '{"result": "ok"}'},
        *([{"role": "assistant", "content": rng.choice(DONE)}] if rng.random() < 0.7 else []),
    ]
