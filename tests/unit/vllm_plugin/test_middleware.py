"""The middleware with a scripted app and channel: what goes on, what the worker is told, what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.guesses import AT_ONCE, LIKELY, Guesser, LexicalGuesses
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.hint import REPORT_HEADER, CallHint, Hint, SlotHint
from ooospec_agents.sidecar.gate import TRIED_EVERY, WaveGate
from ooospec_agents.vllm_plugin.accelerator import MAX_CATALOGS, Accelerator
from ooospec_agents.vllm_plugin.middleware import MAX_BODY_BYTES, Middleware
from ooospec_agents.vllm_plugin.tenancy import internal_id, tenant_of

TOOLS = [
    {
        "type": "function",
        "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}},
    }
]
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Paris?"}]}
KEY = (b"authorization", b"Bearer secret")
TENANT = tenant_of([KEY])


class FakeChannel:
    """Notes what is sent; reports on every request."""

    def __init__(self) -> None:
        self.opened: list[RequestSpec] = []
        self.hints: list[tuple[str, Hint]] = []
        self.guessed: dict[str, LexicalGuesses] = {}
        self.batches: list[tuple[str, set[str]]] = []
        self.works = True
        self.silent = False

    def open(self, spec: RequestSpec) -> bool:
        self.opened.append(spec)
        return self.works

    def hint(self, request_id: str, hint: Hint) -> bool:
        self.hints.append((request_id, hint))
        return True

    def guesses(self, request_id: str, guesses: LexicalGuesses) -> bool:
        self.guessed[request_id] = guesses
        self.batches.append((request_id, {name for name, _ in guesses.values}))
        return True

    async def report(self, request_id: str, timeout: float) -> dict[str, Any] | None:
        return self.take_report(request_id)

    def take_report(self, request_id: str) -> dict[str, Any] | None:
        return None if self.silent else {"id": request_id, "steps": 3}


class FakeApp:
    """A chat route: notes the request, answers what it is told to."""

    def __init__(self, pieces: Sequence[bytes] = (b'{"id":"c1"}',), kind: str = "application/json", status: int = 200):
        self.pieces, self.kind, self.status = pieces, kind, status
        self.scope: dict[str, Any] = {}
        self.body = b""
        self.later: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope = dict(scope)
        more = True
        while more:
            message = await receive()
            self.body += message.get("body", b"")
            more = message.get("more_body", False)
        self.later = await receive()
        length = str(sum(map(len, self.pieces))).encode()
        headers = [(b"content-type", self.kind.encode())]
        if self.kind == "application/json":
            headers.append((b"content-length", length))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for index, piece in enumerate(self.pieces):
            more = index + 1 < len(self.pieces)
            await send({"type": "http.response.body", "body": piece, "more_body": more})


def accelerator(channel: FakeChannel | None = None, sidecar: Any = None) -> Accelerator:
    made = Accelerator()
    made.start(channel or FakeChannel(), tool_call_parser="hermes", sidecar=sidecar)  # type: ignore[arg-type]
    return made


async def call(
    app: FakeApp,
    accelerator: Accelerator,
    *pieces: bytes,
    path: str = "/v1/chat/completions",
    headers: Sequence[tuple[bytes, bytes]] = (KEY,),
) -> tuple[dict[str, Any], bytes]:
    """Send a request in pieces; the start of the response and its body."""
    incoming = [
        {"type": "http.request", "body": piece, "more_body": index + 1 < len(pieces)}
        for index, piece in enumerate(pieces)
    ]
    incoming.append({"type": "http.disconnect"})
    sent: list[Any] = []

    async def receive() -> Any:
        return incoming.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    length = (b"content-length", str(sum(map(len, pieces))).encode())
    scope = {"type": "http", "method": "POST", "path": path, "headers": [*headers, length]}
    await Middleware(app, accelerator)(scope, receive, send)
    return sent[0], b"".join(message["body"] for message in sent[1:])


def dump(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()


async def test_request_with_tools_is_announced_and_stamped() -> None:
    app, channel = FakeApp(), FakeChannel()
    await call(app, accelerator(channel), dump({**CHAT, "tools": TOOLS, "tool_choice": "required"}))
    [spec] = channel.opened
    assert (spec.method, spec.wire_format, spec.required, spec.tenant) == ("ooospec", "hermes", True, TENANT)
    assert [function.name for function in spec.catalog.functions] == ["get_weather"]
    assert spec.conversation == "user: Paris?"
    sent = json.loads(app.body)
    assert sent == {**CHAT, "tools": TOOLS, "tool_choice": "required", "vllm_xargs": {"ooospec_id": spec.id}}


async def test_content_length_fits_the_changed_body() -> None:
    app = FakeApp()
    await call(app, accelerator(), dump({**CHAT, "tools": TOOLS}))
    assert dict(app.scope["headers"])[b"content-length"] == str(len(app.body)).encode()


async def test_body_in_pieces_is_read_as_one() -> None:
    body = dump({**CHAT, "tools": TOOLS})
    app, channel = FakeApp(), FakeChannel()
    await call(app, accelerator(channel), *(body[i : i + 7] for i in range(0, len(body), 7)))
    assert len(channel.opened) == 1
    assert json.loads(app.body)["tools"] == TOOLS


async def test_disconnect_after_the_body_still_arrives() -> None:
    app = FakeApp()
    await call(app, accelerator(), dump({**CHAT, "tools": TOOLS}))
    assert app.later == {"type": "http.disconnect"}


async def test_plain_chat_passes_byte_for_byte() -> None:
    app, channel = FakeApp(), FakeChannel()
    raw = b'{ "messages": [],\n "model": "m" }'
    _, response = await call(app, accelerator(channel), raw)
    assert (app.body, channel.opened, response) == (raw, [], b'{"id":"c1"}')


@pytest.mark.parametrize(
    "raw",
    [
        b'{"tools": [',
        b'["tools"]',
        b'{"tools": "x"}',
        b"[" * 100_000 + b'"tools"',
        b'{"messages": 5, "tools": {"a": 1}}',
        b'\xff"tools"',
    ],
    ids=["cut", "list", "text", "deep", "object", "bytes"],
)
async def test_bad_bodies_are_left_to_vllm(raw: bytes) -> None:
    app, channel = FakeApp(), FakeChannel()
    await call(app, accelerator(channel), raw)
    assert (app.body, channel.opened) == (raw, [])


async def test_tools_that_are_no_tools_pass() -> None:
    app, channel = FakeApp(), FakeChannel()
    await call(app, accelerator(channel), dump({**CHAT, "tools": [1, None, {"type": "function"}]}))
    assert json.loads(app.body)["tools"] == [1, None, {"type": "function"}]


async def test_too_large_a_body_passes_untouched() -> None:
    app, channel = FakeApp(), FakeChannel()
    raw = dump({**CHAT, "tools": TOOLS, "pad": "x" * MAX_BODY_BYTES})
    await call(app, accelerator(channel), raw[:1000], raw[1000:-5], raw[-5:])
    assert (app.body, channel.opened) == (raw, [])


async def test_other_paths_pass() -> None:
    app, channel = FakeApp(), FakeChannel()
    raw = dump({**CHAT, "tools": TOOLS})
    await call(app, accelerator(channel), raw, path="/v1/completions")
    assert (app.body, channel.opened) == (raw, [])


async def test_without_drafting_all_passes() -> None:
    app, idle = FakeApp(), Accelerator()
    raw = dump({**CHAT, "tools": TOOLS})
    await call(app, idle, raw)
    assert app.body == raw


async def test_full_socket_leaves_the_request_without_a_stamp() -> None:
    app, channel = FakeApp(), FakeChannel()
    channel.works = False
    raw = dump({**CHAT, "tools": TOOLS})
    await call(app, accelerator(channel), raw)
    assert app.body == raw


async def test_our_own_fault_is_counted_and_the_request_goes_on() -> None:
    class Broken(FakeChannel):
        def open(self, spec: RequestSpec) -> bool:
            raise RuntimeError("broken")

    app, ours = FakeApp(), accelerator(Broken())
    raw = dump({**CHAT, "tools": TOOLS})
    for _ in range(2):
        app.body = b""
        await call(app, ours, raw)
        assert app.body == raw
    assert ours.faults.counts == {"middleware": 2}


async def test_reserved_names_are_taken_out_and_others_stay() -> None:
    app, channel = FakeApp(), FakeChannel()
    xargs = {"ooospec": "off", "ooospec_id": "other", "ooospec_anything": 1, "mine": 2}
    await call(app, accelerator(channel), dump({**CHAT, "vllm_xargs": xargs}))
    assert json.loads(app.body)["vllm_xargs"] == {"mine": 2}
    assert channel.opened == []


async def test_reserved_name_spelled_with_an_escape_is_taken_out() -> None:
    app = FakeApp()
    await call(app, accelerator(), b'{"messages": [], "vllm_xargs": {"\\u006foospec_id": "other"}}')
    assert json.loads(app.body) == {"messages": [], "vllm_xargs": {}}


async def test_client_id_is_known_under_the_tenants_own_id() -> None:
    channel = FakeChannel()
    body = dump({**CHAT, "tools": TOOLS, "vllm_xargs": {"ooospec_id": "mine"}})
    await call(FakeApp(), accelerator(channel), body)
    await call(FakeApp(), accelerator(channel), body, headers=[(b"authorization", b"Bearer other")])
    ids = [spec.id for spec in channel.opened]
    assert ids == [
        internal_id(TENANT, "mine"),
        internal_id(tenant_of([(b"authorization", b"Bearer other")]), "mine"),
    ]
    assert ids[0] != ids[1]


async def test_hint_in_the_request_follows_the_announcement() -> None:
    channel = FakeChannel()
    hint = Hint.of_call("get_weather", {"city": "Paris"})
    body = {**CHAT, "tools": TOOLS, "vllm_xargs": {"ooospec_hint": hint.to_json()}}
    await call(FakeApp(), accelerator(channel), dump(body))
    assert channel.hints == [(channel.opened[0].id, hint)]


async def test_bad_hint_in_the_request_is_dropped() -> None:
    app, channel = FakeApp(), FakeChannel()
    ours = accelerator(channel)
    await call(app, ours, dump({**CHAT, "tools": TOOLS, "vllm_xargs": {"ooospec_hint": "{"}}))
    assert (len(channel.opened), channel.hints, ours.faults.counts) == (1, [], {"vllm_xargs.ooospec_hint": 1})


@pytest.mark.parametrize(
    ("change", "method"),
    [
        ({"vllm_xargs": {"ooospec": "lexical"}}, "lexical"),
        ({"vllm_xargs": {"ooospec": "toolspec"}}, "toolspec"),
        ({"tool_choice": "none", "vllm_xargs": {"ooospec_report": 1}}, "off"),
        ({"tools": [], "vllm_xargs": {"ooospec": "ooospec", "ooospec_report": 1}}, "off"),
        ({"tool_choice": {"type": "allowed_tools"}, "vllm_xargs": {"ooospec_report": 1}}, "off"),
    ],
    ids=["lexical", "toolspec", "none", "no tools", "allowed tools"],
)
async def test_method(change: dict[str, Any], method: str) -> None:
    channel = FakeChannel()
    await call(FakeApp(), accelerator(channel), dump({**CHAT, "tools": TOOLS, **change}))
    assert [spec.method for spec in channel.opened] == [method]


async def test_unknown_method_is_not_drafted() -> None:
    app, channel = FakeApp(), FakeChannel()
    await call(app, accelerator(channel), dump({**CHAT, "tools": TOOLS, "vllm_xargs": {"ooospec": "warp"}}))
    assert (channel.opened, json.loads(app.body)["vllm_xargs"]) == ([], {})


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "function": {"name": "get_weather"}},
        {"type": "function", "name": "get_weather"},
    ],
    ids=["chat", "responses"],
)
async def test_named_tool(choice: dict[str, Any]) -> None:
    channel = FakeChannel()
    await call(FakeApp(), accelerator(channel), dump({**CHAT, "tools": TOOLS, "tool_choice": choice}))
    assert (channel.opened[0].named, channel.opened[0].required) == ("get_weather", True)


async def test_responses_request_is_drafted() -> None:
    channel = FakeChannel()
    tools = [{"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}]
    body = {"model": "m", "input": "Paris?", "tools": tools}
    await call(FakeApp(), accelerator(channel), dump(body), path="/v1/responses")
    [spec] = channel.opened
    assert (spec.conversation, spec.catalog.functions[0].name) == ("user: Paris?", "get_weather")


@pytest.mark.parametrize("allowed", ["1", "0"])
async def test_replay_only_where_it_is_allowed(allowed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOOSPEC_ALLOW_REPLAY", allowed)
    app = FakeApp()
    await call(app, accelerator(), dump({**CHAT, "vllm_xargs": {"ooospec_replay": [1, 2]}}))
    assert json.loads(app.body)["vllm_xargs"].get("ooospec_replay") == ([1, 2] if allowed == "1" else None)


REPORT = {**CHAT, "tools": TOOLS, "vllm_xargs": {"ooospec_report": 1}}


async def test_report_is_the_last_key_of_a_whole_response() -> None:
    app, channel = FakeApp([b'{"id":"c1","x":[', b"1]}"]), FakeChannel()
    start, body = await call(app, accelerator(channel), dump(REPORT))
    assert body == b'{"id":"c1","x":[1],"ooospec":{"id":"%s","steps":3}}' % channel.opened[0].id.encode()
    assert dict(start["headers"])[b"content-length"] == str(len(body)).encode()


STREAM = [
    b'data: {"id":"c1","object":"chat.completion.chunk","created":5,"model":"m","choices":[{}]}\n\n',
    b'data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n',
    b"data: [DONE]\n\n",
]


@pytest.mark.parametrize("joined", [False, True])
async def test_report_is_the_last_chunk_of_a_stream(joined: bool) -> None:
    channel = FakeChannel()
    pieces = [b"".join(STREAM)] if joined else STREAM
    _, body = await call(FakeApp(pieces, "text/event-stream; charset=utf-8"), accelerator(channel), dump(REPORT))
    report = b'{"id":"%s","steps":3}' % channel.opened[0].id.encode()
    chunk = b'"object":"chat.completion.chunk","created":5,"model":"m","choices":[],"ooospec":' + report
    assert body == STREAM[0] + STREAM[1] + b'data: {"id":"c1",' + chunk + b"}\n\n" + STREAM[2]


@pytest.mark.parametrize("case", ["not asked", "no report", "error", "broken stream"])
async def test_response_without_a_report_is_unchanged(case: str) -> None:
    channel, app, body = FakeChannel(), FakeApp(), REPORT
    if case == "not asked":
        body = {**CHAT, "tools": TOOLS}
    elif case == "no report":
        channel.silent = True
    elif case == "error":
        app = FakeApp(status=400)
    else:
        app = FakeApp([b'data: {"error": "x"}\n\n', b"data: [DONE]\n\n"], "text/event-stream")
    start, answer = await call(app, accelerator(channel), dump(body))
    assert answer == b"".join(app.pieces)
    if app.kind == "application/json":
        assert dict(start["headers"])[b"content-length"] == str(len(answer)).encode()


class FakeSidecar:
    """Gives its hint when asked to."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.cancelled = 0

    def submit(self, catalog: Any, messages: Any, callback: Any, **options: Any) -> Any:
        self.asked.append((messages, callback, options))
        return self

    def cancel(self) -> None:
        self.cancelled += 1


async def test_sidecar_is_asked_and_its_hint_passed_on() -> None:
    channel, sidecar = FakeChannel(), FakeSidecar()
    await call(FakeApp(), accelerator(channel, sidecar), dump({**CHAT, "tools": TOOLS}))
    [(messages, callback, options)] = sidecar.asked
    assert (messages, options) == (CHAT["messages"], {"named": "", "no_call_allowed": True})
    hint = Hint.of_call("get_weather", {})
    callback(hint)
    assert channel.hints == [(channel.opened[0].id, hint)]
    assert sidecar.cancelled == 1  # the response was over


@pytest.mark.parametrize("xargs", [{"ooospec": "lexical"}, {"ooospec_id": "mine"}, {"ooospec_hint": "{}"}])
async def test_sidecar_is_not_asked_where_its_hint_is_not_wanted(xargs: dict[str, Any]) -> None:
    sidecar = FakeSidecar()
    await call(FakeApp(), accelerator(None, sidecar), dump({**CHAT, "tools": TOOLS, "vllm_xargs": xargs}))
    assert sidecar.asked == []


@pytest.mark.parametrize(
    ("method", "made"), [("lexical", True), ("ooospec", True), ("toolspec", False), ("off", False)]
)
async def test_guesses_are_made_beside_the_request(method: str, made: bool) -> None:
    channel = FakeChannel()
    body = {**CHAT, "tools": TOOLS, "vllm_xargs": {"ooospec": method, "ooospec_report": 1}}
    await call(FakeApp(), accelerator(channel), dump(body))
    async with asyncio.timeout(5):
        while made and not channel.guessed:
            await asyncio.sleep(0.001)
    await asyncio.sleep(0)
    expected = {channel.opened[0].id: LexicalGuesses.of(Catalog.from_tools(TOOLS), "user: Paris?")} if made else {}
    assert channel.guessed == expected


def many_tools(count: int) -> list[dict[str, Any]]:
    """Tools of a parameter each."""
    return [
        {"type": "function", "function": {**TOOLS[0]["function"], "name": f"tool_{number}", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        }}}
        for number in range(count)
    ]  # fmt: skip


async def test_the_values_of_all_functions_are_guessed_while_nobody_waits() -> None:
    channel = FakeChannel()
    ours = accelerator(channel)
    tools = many_tools(LIKELY + AT_ONCE + 1)
    first = ours.begin({**CHAT, "tools": tools}, "")
    assert first is not None
    async with asyncio.timeout(5):
        while len(channel.batches) < 3:
            await asyncio.sleep(0.001)
    assert [(name, len(functions)) for name, functions in channel.batches] == [
        (first.id, LIKELY), (first.id, AT_ONCE), (first.id, 1),
    ]  # fmt: skip
    assert set.union(*(functions for _, functions in channel.batches)) == {tool["function"]["name"] for tool in tools}


@pytest.mark.parametrize("event", ["over", "another"])
async def test_no_further_values_are_guessed_once_they_are_of_no_use_or_somebody_waits(event: str) -> None:
    channel = FakeChannel()
    ours = accelerator(channel)
    tools = many_tools(LIKELY + 20 * AT_ONCE)
    first = ours.begin({**CHAT, "tools": tools}, "")
    assert first is not None
    async with asyncio.timeout(5):
        while not channel.batches:
            await asyncio.sleep(0)
    if event == "over":
        ours.finish(first)
    else:
        other = ours.begin({**CHAT, "tools": TOOLS}, "")
        assert other is not None
        async with asyncio.timeout(5):
            while channel.batches[-1][0] != other.id:
                await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)
    assert len([name for name, _ in channel.batches if name == first.id]) < 5


async def test_guesses_that_fail_cost_the_request_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Guesser, "first", fail)
    channel = FakeChannel()
    ours = accelerator(channel)
    start, body = await call(FakeApp(), ours, dump({**CHAT, "tools": TOOLS}))
    async with asyncio.timeout(5):
        while not ours.faults.counts:
            await asyncio.sleep(0.001)
    assert (start["status"], body, channel.guessed) == (200, b'{"id":"c1"}', {})


async def test_a_first_hint_is_sent_at_once_and_a_surer_one_replaces_it_slot_by_slot() -> None:
    channel, sidecar, predictor, ours = FakeChannel(), FakeSidecar(), FakeSidecar(), Accelerator()
    ours.start(
        channel,  # type: ignore[arg-type]
        tool_call_parser="hermes",
        sidecar=sidecar,  # type: ignore[arg-type]
        predictor=predictor,  # type: ignore[arg-type]
    )
    await call(FakeApp(), ours, dump({**CHAT, "tools": TOOLS, "tool_choice": "required"}))
    [(messages, first, options)] = predictor.asked
    assert (messages, options) == (CHAT["messages"], {"named": "", "no_call_allowed": False})
    span = Hint.of_call("get_weather", {"city": "Paris", "unit": "C"}, 0.5)
    first(span)
    slots = {"city": SlotHint(value="Rome", confidence=0.2), "unit": SlotHint(value="F", confidence=0.9)}
    sidecar.asked[0][1](Hint(calls=(CallHint(name="get_weather", confidence=0.9, slots=slots),)))
    assert [request_id for request_id, _ in channel.hints] == [channel.opened[0].id] * 2
    assert channel.hints[0][1] == span
    last = channel.hints[1][1].calls[0].slots
    assert {name: slot.value for name, slot in last.items()} == {"city": "Paris", "unit": "F"}
    assert predictor.cancelled == 1


@pytest.mark.parametrize("xargs", [{"ooospec": "lexical"}, {"ooospec_id": "mine"}, {"ooospec_hint": "{}"}])
async def test_the_predictor_is_not_asked_where_its_hint_is_not_wanted(xargs: dict[str, Any]) -> None:
    predictor, ours = FakeSidecar(), Accelerator()
    ours.start(FakeChannel(), tool_call_parser="hermes", predictor=predictor)  # type: ignore[arg-type]
    await call(FakeApp(), ours, dump({**CHAT, "tools": TOOLS, "vllm_xargs": xargs}))
    assert predictor.asked == []
    await call(FakeApp(), ours, dump({**CHAT, "tools": TOOLS}))
    assert len(predictor.asked) == 1


async def test_a_server_without_guesses_drafts_from_schema_and_history() -> None:
    channel, ours = FakeChannel(), Accelerator()
    ours.start(channel, tool_call_parser="hermes", method="toolspec")  # type: ignore[arg-type]
    await call(FakeApp(), ours, dump({**CHAT, "tools": TOOLS}))
    await call(FakeApp(), ours, dump({**CHAT, "tools": TOOLS, "vllm_xargs": {"ooospec": "lexical"}}))
    assert [spec.method for spec in channel.opened] == ["toolspec", "lexical"]


async def test_a_header_asks_for_the_report_as_well() -> None:
    body = dump({**CHAT, "tools": TOOLS})
    _, plain = await call(FakeApp(), accelerator(), body)
    _, asked = await call(FakeApp(), accelerator(), body, headers=(KEY, (REPORT_HEADER.encode(), b"1")))
    assert "ooospec" not in json.loads(plain)
    assert json.loads(asked)["ooospec"]["steps"] == 3


@pytest.mark.parametrize("xargs", [{}, {"ooospec_report": 1}])
async def test_a_gate_tries_a_wave_and_leaves_those_out_that_gain_nothing(xargs: dict[str, Any]) -> None:
    sidecar, ours = FakeSidecar(), Accelerator()
    ours.start(FakeChannel(), tool_call_parser="hermes", sidecar=sidecar, gate=WaveGate())  # type: ignore[arg-type]
    asked = []
    for _ in range(TRIED_EVERY + 4):
        await call(FakeApp(), ours, dump({**CHAT, "tools": TOOLS, "vllm_xargs": xargs}))
        asked.append(len(sidecar.asked))
    assert asked == [0] * (TRIED_EVERY - 1) + [1] * 5


async def test_catalogs_are_kept_within_bounds() -> None:
    ours = accelerator()
    for index in range(MAX_CATALOGS + 10):
        ours.prepare([{"type": "function", "function": {"name": f"f{index}"}}])
    assert len(ours._catalogs) == MAX_CATALOGS
