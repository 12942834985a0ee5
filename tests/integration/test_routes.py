"""Our routes and middleware in a real FastAPI app, over ASGI."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.hint import MAX_HINT_BYTES, Hint
from ooospec_agents.vllm_plugin import endpoint
from ooospec_agents.vllm_plugin.endpoint import EndpointPlugin, create
from ooospec_agents.vllm_plugin.tenancy import internal_id, tenant_of

TENANT = tenant_of([(b"authorization", b"Bearer k")])
HINT = Hint.of_call("f", {"a": 1})


class FakeChannel:
    def __init__(self, ranks: range) -> None:
        self.ranks = ranks
        self.opened: list[RequestSpec] = []
        self.hints: list[tuple[str, Hint]] = []
        self.closed = False

    def open(self, spec: RequestSpec) -> bool:
        self.opened.append(spec)
        return True

    def hint(self, request_id: str, hint: Hint) -> bool:
        self.hints.append((request_id, hint))
        return True

    def guesses(self, request_id: str, guesses: Any) -> bool:
        return True

    def take_report(self, request_id: str) -> dict[str, Any] | None:
        return None

    async def report(self, request_id: str, timeout: float) -> dict[str, Any]:
        return {"id": request_id}

    def close(self) -> None:
        self.closed = True


class FakeEngine:
    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.called: list[str] = []

    async def collective_rpc(self, method: str) -> list[dict[str, Any]]:
        self.called.append(method)
        return self.answers


async def serve(engine: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[EndpointPlugin, httpx.AsyncClient]:
    monkeypatch.setattr(endpoint, "ApiChannel", FakeChannel)
    monkeypatch.setattr(endpoint.atexit, "register", lambda call: call)
    app = FastAPI()
    plugin = create()
    plugin.attach_router(app)

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> JSONResponse:
        return JSONResponse({"got": await request.json()})

    args = Namespace(tool_call_parser="hermes", data_parallel_size=2, data_parallel_size_local=None)
    await plugin.init_state(engine, app.state, args)
    headers = {"authorization": "Bearer k"}
    transport = httpx.ASGITransport(app)
    return plugin, httpx.AsyncClient(transport=transport, base_url="http://target", headers=headers)


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[FakeChannel, httpx.AsyncClient]]:
    ranks = ({"drafting": True, "reason": ""}, {"drafting": False, "reason": "not read"})
    plugin, client = await serve(FakeEngine(*ranks), monkeypatch)
    channel: Any = plugin.accelerator._channel
    async with client:
        yield channel, client
    await plugin.accelerator.aclose()
    assert channel.closed


Served = tuple[FakeChannel, httpx.AsyncClient]


@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_hint_reaches_the_worker_under_the_tenants_id(served: Served, method: str) -> None:
    channel, client = served
    response = await client.request(method, "/v1/ooospec/hints/mine", content=HINT.to_json())
    assert response.status_code == 202
    assert channel.hints == [(internal_id(TENANT, "mine"), HINT)]


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 422), (b'{"calls": 1}', 422), (b" " * (MAX_HINT_BYTES + 1), 413), (b"x" * 1_000_000, 413)],
    ids=["cut", "wrong", "large", "1 MB"],
)
async def test_bad_hint_is_refused(served: Served, body: bytes, status: int) -> None:
    channel, client = served
    response = await client.put("/v1/ooospec/hints/mine", content=body)
    assert (response.status_code, channel.hints) == (status, [])


async def test_prepare_reads_the_tools(served: Served) -> None:
    _, client = served
    tools = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
    answer = (await client.post("/v1/ooospec/prepare", json={"tools": tools})).json()
    assert answer["functions"] == 2
    assert answer["catalog"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"tools": 1}', b"[" * 200_000])
async def test_bad_prepare_is_refused(served: Served, body: bytes) -> None:
    _, client = served
    assert (await client.post("/v1/ooospec/prepare", content=body)).status_code == 422


async def test_status_says_how_it_stands(served: Served) -> None:
    _, client = served
    status = (await client.get("/v1/ooospec/status")).json()
    assert (status["drafting"], status["reason"], status["wire_format"]) == (True, "", "hermes")
    assert (status["tool_call_parser"], status["sidecar"]) == ("hermes", None)


async def test_chat_request_goes_through_the_middleware(served: Served) -> None:
    channel, client = served
    body = {"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]}
    answer = (await client.post("/v1/chat/completions", json={**body, "vllm_xargs": {"ooospec_report": 1}})).json()
    [spec] = channel.opened
    assert answer == {"got": {**body, "vllm_xargs": {"ooospec_id": spec.id}}, "ooospec": {"id": spec.id}}
    assert channel.ranks == range(2)


@pytest.mark.parametrize("answers", [[], [{"drafting": False, "reason": "no"}]])
async def test_target_without_drafts_serves_and_says_why(answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(*answers)
    _, client = await serve(engine, monkeypatch)
    body = {"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]}
    async with client:
        status = (await client.get("/v1/ooospec/status")).json()
        assert (status["drafting"], bool(status["reason"])) == (False, True)
        assert (await client.post("/v1/chat/completions", json=body)).json() == {"got": body}
        assert (await client.put("/v1/ooospec/hints/x", content=HINT.to_json())).status_code == 202
    assert engine.called == ["ooospec_bind"]


async def test_engine_that_cannot_be_bound_is_served_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = await serve(object(), monkeypatch)
    async with client:
        status = (await client.get("/v1/ooospec/status")).json()
    assert (status["drafting"], status["reason"].partition(":")[0]) == (False, "AttributeError")
    assert json.dumps(status)


async def test_a_sidecar_address_that_is_none_is_counted_and_the_target_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOOSPEC_SIDECAR_URL", "nonsense")
    plugin, client = await serve(FakeEngine({"drafting": True, "reason": ""}), monkeypatch)
    body = {"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]}
    async with client:
        status = (await client.get("/v1/ooospec/status")).json()
        assert (status["drafting"], status["faults"]["sidecar"]) == (True, 1)
        assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
    await plugin.accelerator.aclose()
