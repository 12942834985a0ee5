"""Whatever is wrong with target, sidecar, tools or hints: the request is answered as without us, and nothing is kept."""

from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
from openai_ooospec import OpenAI
from openai_ooospec.tagging import target_of

from ooospec_agents.client import TargetClient
from ooospec_agents.hint import MAX_HINT_BYTES, Hint
from ooospec_agents.testing import Call, Received, Reply, ScriptedSidecar, ScriptedTarget
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker
from ooospec_agents.testing.loopback import Answer
from ooospec_agents.testing.target import MAX_WAITING_HINTS

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    }
]
ASK: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "Go"}], "tools": TOOLS}
REPLY = Reply(calls=(Call("f", {"x": 1}),))
TABLE = {"Which tool is called next": " 0", "value of x": " 1"}
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Asks once, with a client that knows its target where there is one; returns client and answer."""

    def run(base_url: str, sidecar: str | None = None, **request: Any) -> tuple[TargetClient, Any]:
        with OpenAI(base_url=base_url, api_key="key", sidecar=sidecar, max_retries=0) as client:
            client.prepare([])
            client.wait_until_known()
            answer = client.chat.completions.create(**{**ASK, **request})
            return target_of(client, client._sidecar), answer

    return run


def name_called(answer: Any) -> str:
    return str(answer.choices[0].message.tool_calls[0].function.name)


def settle(server: ScriptedTarget | ScriptedSidecar, client: TargetClient) -> None:
    assert server.wait_for(lambda: client.pending == 0), "a hint was kept on its way"


def hinted(target: ScriptedTarget) -> list[str]:
    return [request.path for request in target.requests if request.path.startswith("/v1/ooospec/hints/")]


class TestTarget:
    def test_down(self) -> None:
        for kind in (openai.OpenAI, OpenAI):
            with (
                kind(base_url=f"{NOWHERE}/v1", api_key="key", max_retries=0) as client,
                pytest.raises(openai.APIConnectionError),
            ):
                client.chat.completions.create(**ASK)

    def test_wrong_url(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY)
        for kind in (openai.OpenAI, OpenAI):
            with kind(base_url=target.url, api_key="key", max_retries=0) as client, pytest.raises(openai.NotFoundError):
                client.chat.completions.create(**ASK)

    def test_no_url_at_all(self) -> None:
        for kind in (openai.OpenAI, OpenAI):
            with (
                kind(base_url="nonsense", api_key="key", max_retries=0) as client,
                pytest.raises(openai.APIConnectionError),
            ):
                client.chat.completions.create(**ASK)

    def test_unknown_model(self, scripted_target: TargetMaker, ask: Callable[..., Any]) -> None:
        target = scripted_target(REPLY, model="served")
        with pytest.raises(openai.NotFoundError, match="The model `scripted` does not exist"):
            ask(target.base_url)

    def test_without_the_plugin_nothing_is_added(self, scripted_target: TargetMaker, ask: Callable[..., Any]) -> None:
        target = scripted_target(REPLY, plugin=False, hosted=True)
        _, answer = ask(target.base_url)
        assert name_called(answer) == "f"
        assert target.chats == [ASK]

    def test_a_hosted_target_would_have_refused_the_field(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY, plugin=False, hosted=True)
        with (
            openai.OpenAI(base_url=target.base_url, api_key="key", max_retries=0) as client,
            pytest.raises(openai.BadRequestError, match="vllm_xargs"),
        ):
            client.chat.completions.create(**ASK, extra_body={"vllm_xargs": {"ooospec_report": 1}})

    def test_a_sidecar_for_a_target_without_the_plugin_is_said_once(
        self,
        scripted_target: TargetMaker,
        scripted_sidecar: SidecarMaker,
        ask: Callable[..., Any],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        target, sidecar = scripted_target(REPLY, plugin=False), scripted_sidecar(TABLE)
        for _ in range(2):
            ask(target.base_url, sidecar.url)
        said = [record.message for record in caplog.records if "Target without the plugin" in record.message]
        assert len(said) == 1
        assert "start it with `ooospec serve target`, or drop `sidecar`" in said[0]
        assert sidecar.waves == []

    def test_a_target_that_does_not_draft_is_said_and_gets_no_hints(
        self,
        scripted_target: TargetMaker,
        scripted_sidecar: SidecarMaker,
        ask: Callable[..., Any],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        target, sidecar = scripted_target(REPLY, drafting=False), scripted_sidecar(TABLE)
        _, answer = ask(target.base_url, sidecar.url)
        assert name_called(answer) == "f"
        assert "scripted: drafting is off" in caplog.text
        assert sidecar.waves == []

    def test_a_request_does_not_wait_for_the_status(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY, status_delay_s=1.0)
        with OpenAI(base_url=target.base_url, api_key="key") as client:
            client.prepare([])
            answer = client.chat.completions.create(**ASK)
            assert client.wait_until_known(0) is False
            assert name_called(answer) == "f"
            assert target.chats == [ASK]
            assert client.wait_until_known()

    def test_a_status_page_that_is_not_ours_counts_as_no_plugin(self, ask: Callable[..., Any]) -> None:
        class CatchAll(ScriptedTarget):
            def respond(self, request: Received) -> Answer:
                return Answer(text="<html>") if request.method == "GET" else super().respond(request)

        with CatchAll(REPLY) as target:
            _, answer = ask(target.base_url)
        assert name_called(answer) == "f"
        assert target.chats == [ASK]

    def test_a_fault_of_ours_does_not_reach_the_request(
        self,
        scripted_target: TargetMaker,
        ask: Callable[..., Any],
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        def broken(*_: Any) -> None:
            msg = "broken on purpose"
            raise RuntimeError(msg)

        monkeypatch.setattr(TargetClient, "xargs", broken)
        target = scripted_target(REPLY)
        _, answer = ask(target.base_url)
        assert name_called(answer) == "f"


class TestSidecar:
    def test_a_working_one_is_asked_and_its_hint_sent(
        self, scripted_target: TargetMaker, scripted_sidecar: SidecarMaker, ask: Callable[..., Any]
    ) -> None:
        target, sidecar = scripted_target(REPLY), scripted_sidecar(TABLE)
        client, answer = ask(target.base_url, sidecar.url)
        settle(target, client)
        assert name_called(answer) == "f"
        assert len(hinted(target)) == 1

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"status": 500}, "answered 500"),
            ({"garbage": "<html>"}, "its answer is not JSON"),
            ({"break_connection": True}, "Requests go on without hints"),
            ({"models": ("other",)}, "answered 404 for model 'ooospec'"),
        ],
        ids=["failing", "garbage", "broken", "no-adapter"],
    )
    def test_one_that_does_not_work_is_said_and_the_request_answered(
        self,
        scripted_target: TargetMaker,
        scripted_sidecar: SidecarMaker,
        caplog: pytest.LogCaptureFixture,
        options: dict[str, Any],
        message: str,
    ) -> None:
        target, sidecar = scripted_target(REPLY), scripted_sidecar(TABLE, **options)
        options = {"sidecar": sidecar.url, "sidecar_model": "ooospec"}
        with OpenAI(base_url=target.base_url, api_key="key", **options) as client:
            client.prepare([])
            assert client.wait_until_known()
            answer = client.chat.completions.create(**ASK)
            settle(target, target_of(client, client._sidecar))
        assert name_called(answer) == "f"
        assert hinted(target) == []
        assert message in caplog.text

    @pytest.mark.parametrize(
        ("address", "message"),
        [(NOWHERE, "start it with `ooospec serve sidecar`"), ("nonsense", "sidecar 'nonsense' is no http address")],
    )
    def test_a_wrong_address_is_said_and_the_request_answered(
        self,
        scripted_target: TargetMaker,
        ask: Callable[..., Any],
        caplog: pytest.LogCaptureFixture,
        address: str,
        message: str,
    ) -> None:
        target = scripted_target(REPLY)
        client, answer = ask(target.base_url, address)
        settle(target, client)
        assert name_called(answer) == "f"
        assert hinted(target) == []
        assert message in caplog.text

    def test_garbage_answers_give_no_values(
        self, scripted_target: TargetMaker, scripted_sidecar: SidecarMaker, ask: Callable[..., Any]
    ) -> None:
        target, sidecar = scripted_target(REPLY), scripted_sidecar(default=" }{")
        client, answer = ask(target.base_url, sidecar.url)
        settle(target, client)
        assert name_called(answer) == "f"
        sent = [target.bodies(path)[0] for path in hinted(target)]
        assert all(not hint.get("calls") for hint in sent)

    def test_a_slow_one_is_not_waited_for(
        self, scripted_target: TargetMaker, scripted_sidecar: SidecarMaker, ask: Callable[..., Any]
    ) -> None:
        target, sidecar = scripted_target(REPLY), scripted_sidecar(TABLE, delay_s=0.5)
        client, answer = ask(target.base_url, sidecar.url)
        assert name_called(answer) == "f"
        assert answer.model_extra["ooospec"]["hint"]["arrived"] is False
        settle(target, client)
        # It came for a finished request, which keeps nothing.
        assert len(hinted(target)) == 1
        assert target.hints == {}


class TestTools:
    def test_what_is_not_json_fails_as_it_does_without_us(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY)
        tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {"x": object()}}}]
        for kind in (openai.OpenAI, OpenAI):
            with (
                kind(base_url=target.base_url, api_key="key") as client,
                pytest.raises(TypeError, match="not JSON serializable"),
            ):
                client.chat.completions.create(**{**ASK, "tools": tools})

    def test_preparing_what_is_not_json_is_silent(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY)
        tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {"x": object()}}}, object()]
        with OpenAI(base_url=target.base_url, api_key="key") as client:
            client.prepare(tools)
            assert client.wait_until_known()
            assert name_called(client.chat.completions.create(**ASK)) == "f"

    @pytest.mark.parametrize(
        "tools",
        [
            [{"type": "custom", "custom": {"name": "c"}}],
            [{"type": "function", "function": {"name": "f", "parameters": {"type": ["nonsense", 7]}}}],
            [{"type": "function", "function": {"name": "f", "parameters": {"$ref": "#/$defs/None"}}}],
            [{"type": "function"}],
            ["f", 7, None],
        ],
        ids=["custom", "type", "ref", "empty", "scalars"],
    )
    def test_odd_tools_are_passed_on(
        self, scripted_target: TargetMaker, scripted_sidecar: SidecarMaker, ask: Callable[..., Any], tools: Any
    ) -> None:
        target = scripted_target(REPLY)
        client, answer = ask(target.base_url, scripted_sidecar(TABLE).url, tools=tools)
        settle(target, client)
        assert name_called(answer) == "f"
        assert target.chats[0]["tools"] == tools


class TestHints:
    """At the script's level; the real server's own tests are with the plugin."""

    HINT = Hint.of_call("f", {"x": 1}).to_json()

    def put(self, target: ScriptedTarget, request_id: str, text: str) -> int:
        return httpx.post(f"{target.base_url}/ooospec/hints/{request_id}", content=text).status_code

    def chat(self, target: ScriptedTarget, request_id: str) -> Any:
        body = {**ASK, "vllm_xargs": {"ooospec_id": request_id, "ooospec_report": 1}}
        return httpx.post(f"{target.base_url}/chat/completions", json=body).json()

    def test_one_megabyte_is_not_sent(
        self, scripted_target: TargetMaker, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: Any
    ) -> None:
        target = scripted_target(REPLY)
        worker = _Worker(Hint.of_call("f", {"x": "x" * 1_000_000}))
        monkeypatch.setattr(TargetClient, "_sidecar_worker", lambda _: worker)
        client, answer = ask(target.base_url, NOWHERE)
        settle(target, client)
        assert name_called(answer) == "f"
        assert hinted(target) == []
        assert f"at most {MAX_HINT_BYTES} are sent" in caplog.text

    def test_a_small_one_of_the_same_worker_is_sent(
        self, scripted_target: TargetMaker, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = scripted_target(REPLY)
        worker = _Worker(Hint.of_call("f", {"x": "x" * 1_000}))
        monkeypatch.setattr(TargetClient, "_sidecar_worker", lambda _: worker)
        client, _ = ask(target.base_url, NOWHERE)
        settle(target, client)
        assert len(hinted(target)) == 1

    def test_one_megabyte_is_refused(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY)
        assert self.put(target, "a", Hint.of_call("f", {"x": "x" * 1_000_000}).to_json()) == 413
        assert target.hints == {}

    def test_what_is_no_hint_is_refused(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY)
        assert self.put(target, "a", '{"calls": 7}') == 422
        assert self.put(target, "a", "}{") == 422
        assert target.hints == {}

    def test_one_before_its_request_is_used(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY)
        assert self.put(target, "a", self.HINT) == 202
        assert self.chat(target, "a")["ooospec"]["hint"]["used"] is True

    def test_twice_the_same_is_taken_once_answered(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY)
        assert [self.put(target, "a", self.HINT) for _ in range(2)] == [202, 202]
        assert self.chat(target, "a")["ooospec"]["hint"]["used"] is True
        assert target.hints == {}

    def test_those_for_unknown_requests_are_bounded(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY)
        for number in range(MAX_WAITING_HINTS + 5):
            assert self.put(target, str(number), self.HINT) == 202
        assert len(target.hints) == MAX_WAITING_HINTS
        assert "0" not in target.hints

    def test_those_for_finished_requests_are_dropped(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(REPLY)
        self.chat(target, "a")
        assert self.put(target, "a", self.HINT) == 202
        assert target.hints == {}


class _Worker:
    """A worker whose prediction is given."""

    def __init__(self, hint: Hint) -> None:
        self._hint = hint

    async def predict(self, *_: Any, **__: Any) -> Hint:
        return self._hint

    def prepare(self, *_: Any) -> None:
        """Nothing to warm."""
