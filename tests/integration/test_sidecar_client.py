"""The client and the worker against a scripted completions server on loopback."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.sources.functions import rank_functions
from ooospec_agents.drafting.sources.span_fit import SpanFit
from ooospec_agents.hint import SlotHint
from ooospec_agents.http_library import httpx
from ooospec_agents.sidecar.backend import SidecarError
from ooospec_agents.sidecar.client import RENEWED_AFTER, CompletionsClient
from ooospec_agents.sidecar.slots import weighed_slot
from ooospec_agents.sidecar.worker import from_url
from ooospec_agents.testing.sidecar import ScriptedSidecar

CATALOG = Catalog((Function("weather", slots=(Slot("city", ("string",)),)), Function("stop")), "client")
MESSAGES = [{"role": "user", "content": "Weather in Oslo?"}]
TABLE = {"Which tool": " 0", "value of city": " Oslo"}


async def kind_of(url: str, model: str | None = "sidecar") -> tuple[str, str]:
    client = CompletionsClient(url, model)
    try:
        with pytest.raises(SidecarError) as caught:
            await client.complete(["a"], 4)
    finally:
        await client.aclose()
    return caught.value.kind, str(caught.value)


async def test_wave_is_one_request() -> None:
    with ScriptedSidecar(TABLE, probability=0.5) as server:
        worker = from_url(server.url)
        hint = await worker.predict(CATALOG, MESSAGES)
        await worker.aclose()
    assert hint is not None
    words = {guess.value: guess.confidence for guess in rank_functions(CATALOG, conversation_text(MESSAGES))}
    # " 0" is one token here; of "1" nothing is said, which counts as 0.01.
    weather, stop = 0.5**0.3 * words["weather"], 0.01**0.3 * words["stop"]
    assert hint.calls[0].confidence == pytest.approx(weather / (weather + stop))
    said = SlotHint(value="Oslo", confidence=0.25)  # " Oslo" is two tokens of at most four characters here
    likely = SpanFit(conversation_text(MESSAGES)).of(CATALOG.functions[0])["city"]
    assert hint.calls[0].slots["city"] == weighed_slot(said, likely, "place")
    assert hint.calls[0].slots["city"].value == "Oslo"
    (wave,) = server.waves
    sent = {key: value for key, value in wave.items() if key != "prompt"}
    assert sent == {"model": "sidecar", "max_tokens": 32, "temperature": 0.0, "stop": ["\n"], "logprobs": 5}
    assert len(wave["prompt"]) == 2


@pytest.mark.parametrize(
    ("served", "chosen"), [(("base", "ooospec"), "ooospec"), (("base",), "base"), (("base", "other"), "base")]
)
async def test_adapter_is_chosen_where_there_is_one(served: tuple[str, ...], chosen: str) -> None:
    with ScriptedSidecar(models=served) as server:
        client = CompletionsClient(server.url)
        await client.complete(["a"], 4)
        await client.aclose()
    assert server.waves[0]["model"] == chosen


@pytest.mark.parametrize(("model", "trained"), [("ooospec", True), ("ooospec-qwen", True), ("SmolLM2", False)])
async def test_trained_by_name(model: str, trained: bool) -> None:
    assert await CompletionsClient("http://localhost:1", model).trained() is trained


async def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kind, message = await kind_of(f"http://127.0.0.1:{port}")
    assert kind == "down"
    assert f"'http://127.0.0.1:{port}'" in message
    assert "ooospec serve sidecar" in message


async def test_wrong_path() -> None:
    with ScriptedSidecar() as server:
        kind, message = await kind_of(f"{server.url}/elsewhere")
    assert kind == "url"
    assert "no completions server" in message


async def test_missing_adapter() -> None:
    with ScriptedSidecar(models=("base",)) as server:
        kind, message = await kind_of(server.url, "ooospec")
    assert kind == "model"
    assert "404 for model 'ooospec'" in message


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"garbage": "<html>"}, "garbage"),
        ({"garbage": "[]"}, "garbage"),
        ({"garbage": '{"choices": []}'}, "garbage"),
        ({"garbage": '{"choices": [{"index": 0, "text": null}]}'}, "garbage"),
        ({"garbage": '{"choices": [{"index": 0, "text": "a", "logprobs": 3}]}'}, "garbage"),
        ({"break_connection": True}, "down"),
        ({"status": 500}, "server"),
        ({"status": 429}, "server"),
        ({"status": 400}, "refused"),
        ({"status": 401}, "key"),
    ],
)
async def test_bad_answers(options: dict[str, Any], kind: str) -> None:
    with ScriptedSidecar(**options) as server:
        assert (await kind_of(server.url))[0] == kind


async def test_dead_sidecar_is_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedSidecar(status=500) as server:
        worker = from_url(server.url, "sidecar")
        with caplog.at_level(logging.WARNING):
            hints = [await worker.predict(CATALOG, MESSAGES) for _ in range(6)]
        await worker.aclose()
    assert hints == [None] * 6
    assert len(server.waves) == 3
    assert [record.getMessage()[:10] for record in caplog.records if record.name.startswith("ooospec")] == [
        "Sidecar at"
    ]


def test_one_client_over_several_loops() -> None:
    with ScriptedSidecar(default=" 0") as server:
        client = CompletionsClient(server.url)

        async def once() -> str:
            (completion,) = await client.complete(["a"], 4)
            await client.aclose()
            return completion.text

        assert [asyncio.run(once()) for _ in range(2)] == [" 0", " 0"]


async def test_key_is_sent() -> None:
    with ScriptedSidecar(TABLE) as server:
        client = CompletionsClient(f"{server.url}/v1/", "sidecar", "secret")
        await client.complete(["a"], 4)
        await client.aclose()
    assert {name.lower(): value for name, value in server.requests[0].headers.items()}[
        "authorization"
    ] == "Bearer secret"


@pytest.mark.parametrize(("cancelled", "pools"), [(RENEWED_AFTER - 1, 1), (RENEWED_AFTER, 2)])
async def test_a_pool_that_may_have_lost_places_is_replaced_and_closed_with_its_last_request(
    cancelled: int, pools: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[httpx.AsyncClient] = []

    class Counted(httpx.AsyncClient):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(httpx, "AsyncClient", Counted)
    with ScriptedSidecar(default=" 0", delay_s=0.3) as server:
        client = CompletionsClient(server.url, "sidecar")
        kept = asyncio.create_task(client.complete(["a"], 4))
        waves = [asyncio.create_task(client.complete(["a"], 4)) for _ in range(cancelled)]
        await asyncio.sleep(0.05)
        for wave in waves:
            wave.cancel()
        await asyncio.wait(waves)
        assert not made[0].is_closed
        assert (await kept)[0].text == " 0"
        assert (await client.complete(["a"], 4))[0].text == " 0"
        assert len(made) == pools
        assert made[0].is_closed == (pools == 2)
        await client.aclose()
    assert all(pool.is_closed for pool in made)
