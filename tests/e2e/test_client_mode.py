"""Client mode on a real target: a sidecar of the client's own, a posted hint, and the same call as without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec

from ooospec_agents.bench.servers import Setup, ours
from ooospec_agents.testing import ScriptedSidecar

pytestmark = pytest.mark.e2e

SETUP = Setup("Qwen2.5-Coder-0.5B-Instruct", dtype="float32", max_model_len=2048)
QUESTION = "What will the weather be in Lisbon for 3 days, in celsius?"


@tool
def get_weather(city: str, days: int, unit: Literal["celsius", "fahrenheit"]) -> str:
    """Weather forecast for a city."""
    return f"{city}: {days} days of sun, {unit}"


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ours(SETUP, tmp_path_factory.mktemp("logs")) as server:
        yield f"{server.url}/v1"


def chat(base_url: str, **options: Any) -> Any:
    model = ChatOoOSpec(model="target", base_url=base_url, api_key="none", temperature=0, max_tokens=64, **options)
    bound = model.bind_tools([get_weather], tool_choice="required")
    assert model.wait_until_known(30)
    return bound


@pytest.fixture(scope="module")
def plain(base_url: str) -> AIMessage:
    return chat(base_url, extra_body={"vllm_xargs": {"ooospec": "off"}}).invoke(QUESTION)


def answers(plain: AIMessage) -> dict[str, str]:
    table = {f"value of {name} ": f" {value}" for name, value in plain.tool_calls[0]["args"].items()}
    return {**table, "Which tool is called next": " 0"}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_clients_hint_is_used_and_changes_nothing(base_url: str, plain: AIMessage, streamed: bool) -> None:
    with ScriptedSidecar(answers(plain)) as sidecar:
        model = chat(base_url, sidecar=sidecar.url)
        answer = model.invoke(QUESTION, stream=streamed)
    report = answer.response_metadata["ooospec"]
    assert report["hint"]["used"] is True
    assert report["accepted"]["hint"] > 0
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [
        (call["name"], call["args"]) for call in plain.tool_calls
    ]
