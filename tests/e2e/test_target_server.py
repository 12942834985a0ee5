"""A real target with our plugin: the same tokens with and without drafts, the routes, bad input, the key."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from ooospec_agents.hint import Hint
from ooospec_agents.process import serving
from ooospec_agents.vllm_plugin.launch import plan_target
from ooospec_agents.weights import resolve

pytestmark = pytest.mark.e2e

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather forecast for a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city", "days", "unit"],
            },
        },
    }
]
CHAT = {
    "model": "target",
    "messages": [{"role": "user", "content": "What will the weather be in Lisbon for 3 days, in celsius?"}],
    "tools": TOOLS,
    "temperature": 0,
    "max_tokens": 96,
    "return_token_ids": True,
}
RIGHT = Hint.of_call("get_weather", {"city": "Lisbon", "days": 3, "unit": "celsius"})
WRONG = Hint.of_call("get_weather", {"city": "Oslo", "days": 9, "unit": "fahrenheit"})
NAMED = {"type": "function", "function": {"name": "get_weather"}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    extra = ["--served-model-name", "target", "--dtype", "float32", "--max-model-len", "2048"]
    extra += ["--max-num-seqs", "4", "--api-key", "secret"]
    plan = plan_target(str(resolve("Qwen2.5-Coder-0.5B-Instruct")), port=port, extra_args=extra)
    url, log = f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("target") / "log"
    headers = {"authorization": "Bearer secret"}
    with (
        serving(plan, f"{url}/health", timeout=400, log=log),
        httpx.Client(base_url=url, headers=headers, timeout=300, trust_env=False) as client,
    ):
        yield client


def ask(client: httpx.Client, **change: Any) -> tuple[list[int], list[dict[str, Any]], dict[str, Any]]:
    """Token ids, tool calls and report of a request that is not streamed."""
    xargs = {"ooospec_report": 1, **change.pop("vllm_xargs", {})}
    response = client.post("/v1/chat/completions", json={**CHAT, **change, "vllm_xargs": xargs})
    assert response.status_code == 200, response.text
    answer = response.json()
    choice = answer["choices"][0]
    calls = [call["function"] for call in choice["message"].get("tool_calls") or []]
    return choice["token_ids"], calls, answer["ooospec"]


def ask_streamed(
    client: httpx.Client, seen: Callable[[int], None] = lambda _: None, **change: Any
) -> tuple[list[int], list[dict[str, Any]], dict[str, Any]]:
    """The same of a streamed one, put together as a client does; `seen` is told how many tokens came so far."""
    xargs = {"ooospec_report": 1, **change.pop("vllm_xargs", {})}
    ids: list[int] = []
    calls: list[dict[str, Any]] = []
    report: dict[str, Any] = {}
    body = {**CHAT, **change, "vllm_xargs": xargs, "stream": True}
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            report = chunk.get("ooospec", report)
            for choice in chunk["choices"]:
                ids += choice.get("token_ids") or []
                seen(len(ids))
                for entry in choice["delta"].get("tool_calls", []):
                    if entry["index"] == len(calls):
                        calls.append(entry["function"])
                    else:
                        calls[entry["index"]]["arguments"] += entry["function"]["arguments"]
    return ids, calls, report


def test_target_says_that_it_drafts(client: httpx.Client) -> None:
    status = client.get("/v1/ooospec/status").json()
    assert (status["drafting"], status["reason"], status["wire_format"]) == (True, "", "fenced")


@pytest.mark.parametrize("choice", ["auto", "required", NAMED], ids=["auto", "required", "named"])
def test_drafts_change_no_token(client: httpx.Client, choice: Any) -> None:
    plain, plain_calls, plain_report = ask(client, tool_choice=choice, vllm_xargs={"ooospec": "off"})
    assert [call["name"] for call in plain_calls] == ["get_weather"]
    assert plain_report["drafted"] == {}
    for hint in (RIGHT, WRONG):
        xargs = {"ooospec_hint": hint.to_json(), "ooospec_scope": hint.calls[0].name + str(hint is RIGHT)}
        assert ask(client, tool_choice=choice, vllm_xargs=xargs)[:2] == (plain, plain_calls)
        assert ask_streamed(client, tool_choice=choice, vllm_xargs=xargs)[:2] == (plain, plain_calls)


def test_hint_posted_ahead_of_its_request_is_used(client: httpx.Client) -> None:
    # The hint says what the target will write, so that whatever the model thinks, it is right.
    _, [call], plain = ask(client, tool_choice="required", vllm_xargs={"ooospec": "off"})
    hint = Hint.of_call(call["name"], json.loads(call["arguments"]))
    assert client.put("/v1/ooospec/hints/mine", content=hint.to_json()).status_code == 202
    xargs = {"ooospec_id": "mine", "ooospec_scope": "ahead"}
    _, calls, report = ask(client, tool_choice="required", vllm_xargs=xargs)
    assert calls == [call]
    assert report["hint"]["arrived"]
    assert report["accepted"]["hint"] > 0
    assert report["steps"] < plain["steps"]


def test_a_hint_that_comes_while_a_step_runs_is_in_the_very_next_draft(client: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "Tell me a short story about a fox."}], "max_tokens": 40}
    ids, _, alone = ask(client, **body, vllm_xargs={"ooospec_scope": "fox"})
    text = client.post("/detokenize", json={"model": "target", "tokens": ids}).json()["prompt"]
    hint = Hint(no_call=1.0, output=text).to_json()
    posted: list[int] = []

    def post(tokens: int) -> None:
        if tokens >= 3 and not posted:
            posted.append(client.put("/v1/ooospec/hints/fox", content=hint).status_code)

    xargs = {"ooospec_id": "fox", "ooospec_scope": "fox again"}
    hinted, _, report = ask_streamed(client, post, **body, vllm_xargs=xargs)
    assert (hinted, posted) == (ids, [202])
    came = report["hint"]["at_token"]
    assert next(entry[3] for entry in report["timeline"] if entry[1] > came) == len(ids) - came - 1
    assert report["steps"] < alone["steps"]


def test_report_reaches_a_stream(client: httpx.Client) -> None:
    ids, _, report = ask_streamed(client, tool_choice="required")
    assert report["tokens"] == len(ids)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"tools": [', 400),
        (json.dumps({**CHAT, "tools": "x"}).encode(), 400),
        (json.dumps({**CHAT, "tools": [1]}).encode(), 400),
        (json.dumps({**CHAT, "vllm_xargs": {"ooospec_hint": "{", "ooospec": "warp"}}).encode(), 200),
    ],
    ids=["cut", "text", "number", "xargs"],
)
def test_bad_body_is_answered_by_vllm(client: httpx.Client, body: bytes, status: int) -> None:
    response = client.post("/v1/chat/completions", content=body, headers={"content-type": "application/json"})
    assert response.status_code == status


def test_hints_for_nobody_do_no_harm(client: httpx.Client) -> None:
    for name in ("unknown", "unknown", "mine"):
        assert client.put(f"/v1/ooospec/hints/{name}", content=RIGHT.to_json()).status_code == 202
    assert client.put("/v1/ooospec/hints/x", content=b"x" * 1_000_000).status_code == 413
    assert client.put("/v1/ooospec/hints/x", content=b'{"calls": 1}').status_code == 422
    assert ask(client, tool_choice="required")[1][0]["name"] == "get_weather"


def test_without_the_key_nothing_is_answered(client: httpx.Client) -> None:
    for method, path in (("GET", "status"), ("POST", "prepare"), ("PUT", "hints/x")):
        response = client.request(method, f"/v1/ooospec/{path}", headers={"authorization": "Bearer no"})
        assert response.status_code == 401


def test_nothing_of_ours_failed(client: httpx.Client) -> None:
    faults = client.get("/v1/ooospec/status").json()["faults"]
    assert faults == {"vllm_xargs": 1}  # the unknown method above
