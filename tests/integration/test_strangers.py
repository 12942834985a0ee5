"""What strangers try, against the real plugin over a scripted engine. Each protection is taken out once: then they win."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

pytest.importorskip("prometheus_client")
pytest.importorskip("zmq")

from ooospec_agents import hint as hint_module
from ooospec_agents.formats import FORMATS
from ooospec_agents.hint import MAX_HINT_BYTES, Hint
from ooospec_agents.predictor.worker import PredictorWorker
from ooospec_agents.sidecar.worker import from_url
from ooospec_agents.testing.fixtures import SidecarMaker
from ooospec_agents.testing.plugin_target import PluginTarget, plugin_target, scripted_output
from ooospec_agents.vllm_plugin import accelerator, routes
from ooospec_agents.vllm_plugin.routes import MAX_TOOLS_BYTES
from ooospec_agents.vllm_plugin.tenancy import internal_id, tenant_of

SECRET = "DE02 1203 0000 0000 2020 51"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "transfer",
            "parameters": {"type": "object", "properties": {"iban": {"type": "string"}}, "required": ["iban"]},
        },
    }
]
HINT = Hint.of_call("transfer", {"iban": SECRET})
ROUTES = (("GET", "status"), ("POST", "prepare"), ("PUT", "hints/x"))


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "REPORT_GRACE_S", 5.0)


def chat(arguments: dict[str, Any], **xargs: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Do it.\n" + json.dumps(arguments)}]
    wanted = {"ooospec_report": 1, **xargs}
    return {"model": "m", "messages": messages, "tools": TOOLS, "tool_choice": "required", "vllm_xargs": wanted}


class Caller:
    """Somebody with an API key."""

    def __init__(self, target: PluginTarget) -> None:
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(target.app), base_url="http://target")

    async def send(self, key: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}", **more.pop("headers", {})}
        return await self._client.request(method, path, headers=headers, **more)

    async def ask(self, key: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        answer = await self.send(key, "POST", "/v1/chat/completions", json=body, **more)
        report: dict[str, Any] = answer.json()["ooospec"]
        return report


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[tuple[PluginTarget, Caller]]:
    async with plugin_target(**options) as target:
        yield target, Caller(target)


def seen_xargs(target: PluginTarget) -> list[dict[str, Any]]:
    """The `vllm_xargs` of each request that reaches the engine."""
    seen: list[dict[str, Any]] = []
    generate = target.engine.generate

    def noting(text: str, xargs: Any, max_tokens: int | None = None) -> Any:
        seen.append(dict(xargs))
        return generate(text, xargs, max_tokens)

    target.engine.generate = noting  # type: ignore[method-assign]
    return seen


@pytest.mark.parametrize(("key", "answered"), [(None, True), ("right", False)], ids=["no check", "check"])
async def test_routes_are_behind_the_key_check(key: str | None, answered: bool) -> None:
    async with running(api_key=key) as (_, caller):
        answers = [await caller.send("wrong", method, f"/v1/ooospec/{path}") for method, path in ROUTES]
        assert [answer.status_code != 401 for answer in answers] == [answered] * 3
        if key is not None:
            assert (await caller.send(key, "GET", "/v1/ooospec/status")).status_code == 200


async def test_oversize_and_malformed_input_is_refused_and_harms_nobody() -> None:
    async with running() as (target, caller):
        for body, status in ((b"x" * (MAX_HINT_BYTES + 1), 413), (b"{", 422), (b'{"calls": 1}', 422), (b"\xff", 422)):
            assert (await caller.send("k", "PUT", "/v1/ooospec/hints/x", content=body)).status_code == status
        for body, status in ((b" " * (MAX_TOOLS_BYTES + 1), 413), (b"{", 422), (b"[" * 100_000, 422)):
            assert (await caller.send("k", "POST", "/v1/ooospec/prepare", content=body)).status_code == status
        deep: Any = "x"
        for _ in range(100):
            deep = {"type": "object", "properties": {"a": deep}}
        for parameters in (
            deep,
            {"$ref": "#"},
            {"properties": 5},
            None,
            {"properties": {str(n): {} for n in range(5000)}},
        ):
            tools = [{"type": "function", "function": {"name": "transfer", "parameters": parameters}}]
            body = {**chat({"iban": SECRET}), "tools": tools}
            answer = (await caller.send("k", "POST", "/v1/chat/completions", json=body)).json()
            assert answer["choices"][0]["message"]["content"] == scripted_output(body)
        report = await caller.ask("k", chat({"iban": SECRET}))
        assert report["steps"] < report["tokens"]
        assert target.engine.invalid == 0
        assert target.engine.proposer.status()["faults"] == 0


async def test_without_its_bounds_oversize_input_would_come_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hint_module, "MAX_HINT_BYTES", 10**9)
    monkeypatch.setattr(routes, "MAX_HINT_BYTES", 10**9)
    monkeypatch.setattr(routes, "MAX_TOOLS_BYTES", 10**9)
    hint = HINT.to_json() + " " * MAX_HINT_BYTES
    tools = json.dumps({"tools": TOOLS}) + " " * MAX_TOOLS_BYTES
    async with running() as (_, caller):
        posted = await caller.send("k", "PUT", "/v1/ooospec/hints/x", content=hint)
        prepared = await caller.send("k", "POST", "/v1/ooospec/prepare", content=tools)
    assert (posted.status_code, prepared.status_code) == (202, 200)


@pytest.mark.parametrize("protected", [True, False])
async def test_reserved_arguments_are_overwritten(protected: bool) -> None:
    forged = {"ooospec_id": internal_id(tenant_of([]), "victim"), "ooospec_seeded": 0, "ooospec_x": 1, "mine": 2}
    async with running() as (target, caller):
        seen = seen_xargs(target)
        if not protected:
            target.plugin.accelerator.drafting = False  # our middleware lets everything pass
        await caller.send("k", "POST", "/v1/chat/completions", json=chat({"iban": "1"}, **forged))
    (xargs,) = seen
    assert xargs["mine"] == 2
    assert ("ooospec_x" in xargs) is not protected
    assert (xargs["ooospec_id"] == forged["ooospec_id"]) is not protected


@pytest.mark.parametrize("drawn", [True, False], ids=["at random", "taken out"])
async def test_ids_are_drawn_at_random(monkeypatch: pytest.MonkeyPatch, drawn: bool) -> None:
    if not drawn:
        monkeypatch.setattr(accelerator.uuid, "uuid4", lambda: uuid.UUID(int=1))
    async with running() as (target, caller):
        seen = seen_xargs(target)
        for _ in range(3):
            await caller.send("k", "POST", "/v1/chat/completions", json=chat({"iban": "1"}))
    ids = {xargs["ooospec_id"] for xargs in seen}
    assert (len(ids) == 3) is drawn
    assert ({uuid.UUID(request_id).version for request_id in ids} == {4}) is drawn  # 122 random bits


@pytest.mark.parametrize(("poster", "isolated", "arrives"), [("a", True, True), ("b", True, False), ("b", False, True)])
async def test_a_hint_for_another_tenants_request_finds_nothing(
    monkeypatch: pytest.MonkeyPatch, poster: str, isolated: bool, arrives: bool
) -> None:
    if not isolated:
        monkeypatch.setattr(accelerator, "tenant_of", lambda headers, header="": "")
    async with running() as (_, caller):
        posted = await caller.send(poster, "PUT", "/v1/ooospec/hints/mine", content=HINT.to_json())
        assert posted.status_code == 202  # whether such a request exists is not told
        report = await caller.ask("a", chat({"iban": SECRET}, ooospec_id="mine"))
    assert report["hint"]["arrived"] is arrives


CANDIDATES = [f"DE02 1203 0000 0000 20{end}" for end in ("11 31", "84 62", "20 51", "93 07", "75 48")]
"""Account numbers of one form; the victim's is in the middle."""


class Obedient:
    """A target that writes a number which stands nowhere in the conversation: an attacker has ways to make it."""

    def __init__(self) -> None:
        self.iban = ""

    def __call__(self, body: dict[str, Any]) -> str:
        return "".join(segment.text for segment in FORMATS["hermes"].write([("transfer", {"iban": self.iban})]))


async def learned(caller: Caller, target: Obedient, observe: Any) -> str | None:
    """What an attacker takes the victim's account number to be: the candidate whose request stands out, if one does."""

    async def probe(key: str, iban: str) -> Any:
        target.iban = iban
        return observe(await caller.ask(key, chat({})))

    for _ in range(4):
        await probe("victim", SECRET)
    # A key for each: what one attempt teaches must not blur the next.
    seen = {iban: await probe(f"attacker {iban}", iban) for iban in CANDIDATES}
    best = min(seen.values())
    likely = [iban for iban, value in seen.items() if value == best]
    return likely[0] if len(likely) == 1 else None


@pytest.mark.parametrize(
    "observe",
    [
        pytest.param(lambda report: report["steps"], id="time in steps"),
        pytest.param(lambda report: -report["accepted"].get("history", 0), id="accepted"),
        pytest.param(lambda report: sum(report["drafted"].values()) - sum(report["accepted"].values()), id="rejected"),
    ],
)
@pytest.mark.parametrize(
    ("isolated", "found"), [(True, None), (False, SECRET)], ids=["isolated", "isolation taken out"]
)
async def test_another_tenants_values_do_not_show_in_time_or_acceptance(
    monkeypatch: pytest.MonkeyPatch, observe: Any, isolated: bool, found: str | None
) -> None:
    assert SECRET in CANDIDATES
    if not isolated:
        monkeypatch.setattr(accelerator, "tenant_of", lambda headers, header="": "")
    obedient = Obedient()
    async with running(script=obedient) as (_, caller):
        assert await learned(caller, obedient, observe) == found


@pytest.mark.parametrize(("named", "arrives"), [("x-tenant", False), ("", True)], ids=["named", "not named"])
async def test_one_key_several_tenants_by_the_operators_header(
    monkeypatch: pytest.MonkeyPatch, named: str, arrives: bool
) -> None:
    monkeypatch.setenv("OOOSPEC_TENANT_HEADER", named)
    async with running() as (_, caller):
        await caller.send("k", "PUT", "/v1/ooospec/hints/mine", content=HINT.to_json(), headers={"X-Tenant": "b"})
        report = await caller.ask("k", chat({"iban": SECRET}, ooospec_id="mine"), headers={"X-Tenant": "a"})
    assert report["hint"]["arrived"] is arrives


@pytest.mark.parametrize("swapped", [False, True], ids=["ours", "theirs configured"])
async def test_only_the_operators_sidecar_is_called(scripted_sidecar: SidecarMaker, swapped: bool) -> None:
    ours, theirs = scripted_sidecar({"Which tool": " 0"}), scripted_sidecar({"Which tool": " 0"})
    wishes = {"ooospec_sidecar": theirs.url, "ooospec_sidecar_url": theirs.url, "sidecar": theirs.url}
    configured, other = (theirs, ours) if swapped else (ours, theirs)
    async with running(sidecar=configured.url, step_s=0.2) as (_, caller):
        await caller.ask("k", {**chat({"iban": SECRET}, **wishes), "sidecar": theirs.url})
    assert configured.requests != []
    assert other.requests == []


@pytest.mark.parametrize("debug", ["0", "1"])
async def test_logs_quote_no_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, debug: str
) -> None:
    monkeypatch.setenv("OOOSPEC_DEBUG", debug)
    body = chat({"iban": SECRET})
    with caplog.at_level(logging.INFO):
        async with running() as (target, caller):
            for xargs in ({"ooospec": SECRET}, {"ooospec_hint": json.dumps({SECRET: 1})}):
                await caller.send("k", "POST", "/v1/chat/completions", json={**body, "vllm_xargs": xargs})

            def fails(*values: Any, **more: Any) -> Any:
                raise KeyError(SECRET)

            monkeypatch.setattr(target.plugin.accelerator, "_catalog", fails)
            await caller.send("k", "POST", "/v1/chat/completions", json=body)
    assert "swallowed a fault in middleware: KeyError" in caplog.text
    assert (SECRET in caplog.text) is (debug == "1")


@pytest.mark.parametrize("debug", ["0", "1"])
async def test_predictors_that_fail_quote_no_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, scripted_sidecar: SidecarMaker, debug: str
) -> None:
    monkeypatch.setenv("OOOSPEC_DEBUG", debug)

    class Fails:
        def prepare(self, catalog: Any) -> None:
            raise ValueError(SECRET)

        def predict(self, *values: Any, **more: Any) -> Any:
            raise ValueError(SECRET)

    catalog = accelerator.Catalog.from_tools(TOOLS)
    sidecar = scripted_sidecar({"value of": " x"}, garbage=json.dumps({"choices": [{"index": 0, "text": [SECRET]}]}))
    with caplog.at_level(logging.INFO):
        predictor, worker = PredictorWorker(Fails), from_url(sidecar.url, model="m")
        assert await predictor.predict(catalog, []) is None
        assert await worker.predict(catalog, []) is None
        await predictor.aclose()
        await worker.aclose()
    assert "The span predictor failed (predict: ValueError" in caplog.text
    assert "no completions server" in caplog.text
    assert (SECRET in caplog.text) is (debug == "1")
