"""One chat request, sent by plain httpx and timed: token ids, wall seconds, time to first token, report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx

from ooospec_agents.bench.data import Item

LIMITS = httpx.Limits(keepalive_expiry=2.0)
"""Connections are not used again after two idle seconds: vLLM's server closes them after five, perhaps just then."""


class RequestFailed(RuntimeError):
    """A server refused a request or went away."""


@dataclass
class Answer:
    """What came back for one request.

    Attributes:
        token_ids: Output token ids, the stop token included where the server counts it.
        prompt_token_ids: Token ids of the rendered prompt.
        content: The text beside calls.
        text: The whole output as the target wrote it, calls included; only of recorded answers.
        calls: `{"name": str, "arguments": JSON text}` in order.
        finish: The finish reason.
        wall_s: Seconds from sending to the last byte.
        first_s: Seconds to the first output token; None where the answer was not streamed.
        arrivals: `[seconds, tokens]` of each streamed chunk that carried tokens.
        report: The "ooospec" report, or None.
        accepted: Draft tokens accepted, as the server's own metrics count them; None where it counts none.
        near: For each output token the log-probabilities of the likeliest ids ("token_id:7"), where asked for.
    """

    token_ids: list[int] = field(default_factory=list)
    prompt_token_ids: list[int] = field(default_factory=list)
    content: str = ""
    text: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)
    finish: str = ""
    wall_s: float = 0.0
    first_s: float | None = None
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    report: dict[str, Any] | None = None
    accepted: int | None = None
    near: list[dict[str, float]] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """Steps of the target that made the output, as well as this answer tells."""
        if self.report and self.report.get("steps"):
            return int(self.report["steps"])
        if self.accepted is not None:
            return len(self.token_ids) - self.accepted
        return len(self.arrivals) or len(self.token_ids)

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON data; `Answer(**data)` reads it back."""
        return asdict(self)


def chat_body(
    model: str,
    item: Item,
    *,
    tool_choice: str = "auto",
    max_tokens: int = 256,
    stream: bool = False,
    cache_salt: str = "",
) -> dict[str, Any]:
    """A greedy chat request for one item. A `cache_salt` of its own keeps it out of the prefix cache."""
    body: dict[str, Any] = {
        "model": model,
        "messages": item.messages,
        "temperature": 0.0,
        "max_tokens": max_tokens,
        "stream": stream,
        "return_token_ids": True,
    }
    if item.tools:
        body |= {"tools": item.tools, "tool_choice": tool_choice}
    if stream:
        body["stream_options"] = {"include_usage": True}  # vLLM streams a drafter's metrics only with the usage
    return body | ({"cache_salt": cache_salt} if cache_salt else {})


def written_text(client: httpx.Client, url: str, model: str, answer: Answer) -> str:
    """An answer's output as text, by the server's own tokenizer, without the token that stopped it.

    Raises:
        RequestFailed: The server does not say.
    """
    tokens = answer.token_ids[:-1] if answer.finish != "length" else answer.token_ids
    response = client.post(f"{url}/detokenize", json={"model": model, "tokens": tokens})
    if response.status_code != httpx.codes.OK:
        msg = f"{url}/detokenize answered {response.status_code}: {response.text[:200]}"
        raise RequestFailed(msg)
    return str(response.json()["prompt"])


def with_xargs(body: Mapping[str, Any], xargs: Mapping[str, Any]) -> dict[str, Any]:
    """The body with these `vllm_xargs` added; the body itself stays as it is."""
    return {**body, "vllm_xargs": {**body.get("vllm_xargs", {}), **xargs}} if xargs else dict(body)


def ask(
    client: httpx.Client, url: str, body: Mapping[str, Any], on_tokens: Callable[[int], None] | None = None
) -> Answer:
    """Send one chat request to the server at `url` and time it.

    Args:
        client: Kept open between requests, so that no connection is made in the timed part.
        url: The server's root, such as "http://127.0.0.1:8000".
        body: The request; "stream" decides how it is read.
        on_tokens: Called after each streamed chunk with the number of output tokens so far.

    Raises:
        RequestFailed: The server cannot be reached or does not answer 200.
    """
    answer = Answer()
    start = time.perf_counter()
    try:
        with client.stream("POST", f"{url}/v1/chat/completions", json=dict(body)) as response:
            if response.status_code != 200:
                response.read()
                msg = f"Server at {url!r} answered {response.status_code}: {response.text[:500]}"
                raise RequestFailed(msg)
            if body.get("stream"):
                _read_stream(response.iter_lines(), answer, start, on_tokens)
            else:
                _read_whole(json.loads(response.read()), answer)
    except (httpx.HTTPError, ValueError) as error:
        msg = f"Request to {url!r} failed: {type(error).__name__}: {error}"
        raise RequestFailed(msg) from error
    answer.wall_s = time.perf_counter() - start
    return answer


def post_hint(client: httpx.Client, url: str, request_id: str, payload: bytes) -> int:
    """Post a hint for a tagged request; the HTTP status, or 0 where the server could not be reached."""
    try:
        return client.post(
            f"{url}/v1/ooospec/hints/{request_id}",
            content=payload,
            headers={"content-type": "application/json"},
        ).status_code
    except httpx.HTTPError:
        return 0


def _read_whole(data: dict[str, Any], answer: Answer) -> None:
    choice = data["choices"][0]
    message = choice["message"]
    answer.token_ids = list(choice.get("token_ids") or [])
    answer.prompt_token_ids = list(data.get("prompt_token_ids") or [])
    answer.content = message.get("content") or ""
    answer.calls = [
        {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        for call in message.get("tool_calls") or []
    ]
    answer.finish = choice.get("finish_reason") or ""
    for entry in (choice.get("logprobs") or {}).get("content") or []:
        answer.near.append({near["token"]: near["logprob"] for near in entry["top_logprobs"]})
    _read_extras(data, answer)


def _read_stream(lines: Iterator[str], answer: Answer, start: float, on_tokens: Callable[[int], None] | None) -> None:
    calls: dict[int, dict[str, str]] = {}
    for line in lines:
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        data = json.loads(line[len("data: ") :])
        answer.prompt_token_ids = answer.prompt_token_ids or list(data.get("prompt_token_ids") or [])
        _read_extras(data, answer)
        for choice in data["choices"]:
            _add_delta(choice["delta"], answer, calls)
            answer.finish = choice.get("finish_reason") or answer.finish
            if new := choice.get("token_ids") or []:
                now = time.perf_counter() - start
                answer.first_s = now if answer.first_s is None else answer.first_s
                answer.token_ids += new
                answer.arrivals.append((now, len(new)))
                if on_tokens:
                    on_tokens(len(answer.token_ids))
    answer.calls = [calls[index] for index in sorted(calls)]


def _add_delta(delta: dict[str, Any], answer: Answer, calls: dict[int, dict[str, str]]) -> None:
    answer.content += delta.get("content") or ""
    for part in delta.get("tool_calls") or []:
        call = calls.setdefault(part.get("index", 0), {"name": "", "arguments": ""})
        function = part.get("function") or {}
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""


def _read_extras(data: dict[str, Any], answer: Answer) -> None:
    answer.report = data.get("ooospec") or answer.report
    speculation = (data.get("metrics") or {}).get("speculative_decoding") or {}
    if "num_accepted_draft_tokens" in speculation:
        answer.accepted = int(speculation["num_accepted_draft_tokens"])
