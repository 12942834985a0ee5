"""The span predictor in the client's process, against a scripted target."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec

from ooospec_agents.catalog import Catalog
from ooospec_agents.hint import Hint
from ooospec_agents.predictor import folder
from ooospec_agents.testing import Call, Reply
from ooospec_agents.testing.fixtures import TargetMaker

WEATHER = Call("get_weather", {"city": "Oslo"})


class Scripted:
    """Says what it was made to say."""

    def prepare(self, catalog: Catalog) -> None:
        """Nothing is to be done ahead."""

    def predict(
        self, catalog: Catalog, messages: Sequence[Any], *, named: str = "", no_call_allowed: bool = True
    ) -> Hint | None:
        return Hint.of_call(catalog.functions[0].name, {"city": "Oslo"}, source="span")


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sun"


def test_a_clients_own_span_predictor_hints(scripted_target: TargetMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "find", lambda: Path())
    monkeypatch.setattr(folder, "loader", lambda _: Scripted)
    target = scripted_target(Reply(calls=(WEATHER,), wait_for_hint_s=5))
    model = ChatOoOSpec(model="scripted", base_url=target.base_url, api_key="key", sidecar="span")
    bound = model.bind_tools([get_weather])
    assert model.wait_until_known()
    answer = bound.invoke("Weather in Oslo?")
    assert answer.response_metadata["ooospec"]["hint"]["used"] is True
    path = f"/v1/ooospec/hints/{target.chats[0]['vllm_xargs']['ooospec_id']}"
    assert target.bodies(path)[0]["source"] == "span"


def test_where_it_cannot_run_the_log_says_what_to_install_and_requests_go_on(
    scripted_target: TargetMaker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(folder, "SHIPPED", tmp_path)
    target = scripted_target(Reply(calls=(WEATHER,)))
    model = ChatOoOSpec(model="scripted", base_url=target.base_url, api_key="key", sidecar="span")
    bound = model.bind_tools([get_weather])
    assert model.wait_until_known()
    with caplog.at_level(logging.WARNING):
        answer = bound.invoke("Weather in Oslo?")
    assert answer.tool_calls[0]["args"] == {"city": "Oslo"}
    assert target.wait_for(lambda: "holds no span predictor" in caplog.text)
