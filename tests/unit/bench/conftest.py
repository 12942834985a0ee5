from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ooospec_agents.bench import rest
from ooospec_agents.bench.data import Item

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {"city": {}}}}}
    for name in ("get_weather", "get_time")
]


def item(number: int = 0, dataset: str = "set") -> Item:
    return Item(f"r{number}", dataset, [{"role": "user", "content": f"Oslo {number}"}], TOOLS)


class FakeTarget:
    """Answers chat requests in memory: stock at http://stock, ours at http://ours.

    Every output is eight tokens, [n, 1, 2, 3, 4, 5, 6, 7] with n the number in the request's message. Ours takes two
    steps and says so in its report. Tests plant faults by `change`, called with host, body and the answer.
    """

    def __init__(self) -> None:
        self.bodies: list[tuple[str, dict[str, Any]]] = []
        self.hints: list[tuple[str, bytes]] = []
        self.prepared: list[Any] = []
        self.metrics = ""
        self.change: Callable[[str, dict[str, Any], dict[str, Any]], None] = lambda host, body, answer: None

    def client(self) -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(self.answer))

    def answer(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if request.url.path == "/metrics":
            return httpx.Response(200, text=self.metrics)
        if "/hints/" in request.url.path:
            self.hints.append((request.url.path.rsplit("/", 1)[1], request.content))
            return httpx.Response(202)
        body = json.loads(request.content)
        if request.url.path.endswith("/prepare"):
            self.prepared.append(json.loads(request.content)["tools"])
            return httpx.Response(200, json={})
        if request.url.path == "/detokenize":
            return httpx.Response(200, json={"prompt": " ".join(map(str, body["tokens"]))})
        self.bodies.append((host, body))
        ids = [int(body["messages"][-1]["content"].split()[-1]), 1, 2, 3, 4, 5, 6, 7][: body["max_tokens"]]
        call = {"function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
        choice: dict[str, Any] = {
            "message": {"content": None, "tool_calls": [call]},
            "token_ids": ids,
            "finish_reason": "tool_calls",
        }
        if body.get("logprobs"):
            top = [{"token": "token_id:3", "logprob": -0.5}, {"token": "token_id:99", "logprob": -0.50005}]
            choice["logprobs"] = {"content": [{"top_logprobs": top}] * len(ids)}
        answer: dict[str, Any] = {"choices": [choice], "prompt_token_ids": [9]}
        xargs = body.get("vllm_xargs", {})
        if host == "ours" and xargs.get("ooospec_report"):
            answer["ooospec"] = {
                "method": xargs["ooospec"],
                "steps": 2,
                "tokens": 8,
                "drafted": {"schema": 6},
                "accepted": {"schema": 6},
                "hint": {"arrived": False, "at_token": None, "used": False, "after_ms": None},
                "draft_ms_total": 0.4,
                "draft_ms_max": 0.3,
            }
        self.change(host, body, answer)
        return httpx.Response(200, text=_stream(answer) if body["stream"] else json.dumps(answer))


def _stream(answer: dict[str, Any]) -> str:
    choice = answer["choices"][0]
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"role": "assistant"}}], "prompt_token_ids": [9]}]
    chunks += [{"choices": [{"delta": {}, "token_ids": [token]}]} for token in choice["token_ids"]]
    calls = [{"index": 0, **choice["message"]["tool_calls"][0]}]
    chunks.append({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": choice["finish_reason"]}]})
    if "ooospec" in answer:
        chunks.append({"choices": [], "ooospec": answer["ooospec"]})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


@pytest.fixture
def target() -> FakeTarget:
    return FakeTarget()


@pytest.fixture
def make_item() -> Callable[..., Item]:
    return item


@pytest.fixture(autouse=True)
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted servers do not watch for work: nobody need wait for them to sleep."""
    monkeypatch.setattr(rest, "WATCH_S", 0.0)
