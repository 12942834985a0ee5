"""The adapter that comes with the package, on a real sidecar and in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ooospec_agents.bench.servers import SidecarSetup, sidecar
from ooospec_agents.catalog import Catalog
from ooospec_agents.hint import Hint
from ooospec_agents.sidecar.adapters import adapter_for, shipped
from ooospec_agents.sidecar.backend import SidecarBackend
from ooospec_agents.sidecar.client import CompletionsClient
from ooospec_agents.sidecar.wave import run_wave
from ooospec_agents.training.local import LocalBackend
from ooospec_agents.weights import resolve

pytestmark = pytest.mark.e2e

MODEL = "SmolLM2-135M-Instruct"


def function(name: str, description: str, required: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    function(
        "get_weather",
        "Get the weather forecast for a city.",
        ["city", "days"],
        city={"type": "string", "description": "The city's name"},
        days={"type": "integer", "description": "Number of days"},
    ),
    function(
        "send_message",
        "Send a message to a contact.",
        ["recipient", "text"],
        recipient={"type": "string", "description": "Who gets the message"},
        text={"type": "string", "description": "The message"},
    ),
]
QUESTION = "What will the weather be in Lisbon for the next 3 days?"


def hint_of(backend: SidecarBackend) -> Hint:
    messages = [{"role": "user", "content": QUESTION}]

    async def ask() -> Hint | None:
        assert await backend.trained()
        hint = await run_wave(backend, Catalog.from_tools(TOOLS), messages)
        await backend.aclose()
        return hint

    hint = asyncio.run(ask())
    assert hint is not None
    return hint


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hint]:
    with sidecar(SidecarSetup(MODEL, adapter_for(MODEL)), tmp_path_factory.mktemp("logs")) as server:
        yield hint_of(CompletionsClient(server.url))


def test_function_and_values_are_guessed(served: Hint) -> None:
    (call,) = served.calls
    assert call.name == "get_weather"
    assert {slot: said.value for slot, said in call.slots.items()} == {"city": "Lisbon", "days": 3}


def test_the_process_that_evaluates_it_says_the_same(served: Hint) -> None:
    local = hint_of(LocalBackend(resolve(MODEL), shipped(MODEL)))
    assert local.calls[0].name == served.calls[0].name
    ours, servers = local.calls[0].slots, served.calls[0].slots
    assert {slot: said.value for slot, said in ours.items()} == {slot: said.value for slot, said in servers.items()}
    for slot, said in ours.items():
        assert said.confidence == pytest.approx(servers[slot].confidence, abs=0.05)
