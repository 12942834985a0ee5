"""The requests of a soak: calls with values that occur once, hints for them, plain chats, streams and cancellations."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import httpx

from ooospec_agents.hint import Hint
from ooospec_agents.testing.plugin_target import scripted_output

Kind = Literal["server", "posted", "chat", "stream", "cancelled"]
MIX: tuple[Kind, ...] = (
    *("server", "posted", "server", "chat", "stream", "server", "posted", "cancelled", "server", "stream"),
)
"""What each ten requests are: hinted by the server's sidecar, by a post, plain chats, streams, clients that hang up."""
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"order": {"type": "string"}, "note": {"type": "string"}},
                "required": ["order"],
            },
        },
    }
    for name in ("find_order", "cancel_order", "return_order")
]


class Traffic:
    """Makes requests and checks answers.

    Args:
        client: Connected to the target.
        model: The target's model.
        recorded: Undrafted answers of a real target, as `record` gives them; None: a scripted target.
        max_tokens: Of an answer.

    Attributes:
        counts: What was seen.
        problems: The first things that were wrong, in words.
    """

    def __init__(
        self, client: httpx.AsyncClient, model: str, recorded: dict[str, str] | None = None, max_tokens: int = 256
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._client = client
        self._model = model
        self._recorded = recorded
        self._max_tokens = max_tokens
        prompts = [key.removeprefix("chat: ") for key in recorded or () if key.startswith("chat: ")]
        self._prompts = itertools.cycle(prompts)
        self._numbers = itertools.count(1)

    async def one(self) -> None:
        """The next request."""
        number = next(self._numbers)
        kind = MIX[number % len(MIX)]
        order = f"order-{number:07d}"
        try:
            await self._one(kind, order)
        except Exception as error:
            self._wrong("errors", f"{kind} {order}: {error!r}")
        self.counts["requests"] += 1
        self.counts[f"kind {kind}"] += 1

    async def _one(self, kind: Kind, order: str) -> None:
        body = self._body(kind, order)
        if kind == "posted":
            self.counts["hints posted"] += 1
            text = Hint.of_call("find_order", {"order": order}, 0.99).to_json()
            (await self._client.put(f"/v1/ooospec/hints/{order}", content=text)).raise_for_status()
            body["vllm_xargs"]["ooospec_id"] = order
        if kind in ("stream", "cancelled"):
            content, report = await self._stream({**body, "stream": True}, hang_up=kind == "cancelled")
        else:
            response = await self._client.post("/v1/chat/completions", json=body)
            response.raise_for_status()
            answer = response.json()
            content, report = _written(answer["choices"][0]["message"]), answer.get("ooospec")
        if kind == "cancelled":
            return
        expected = self._expected(body)
        if expected is None:
            self.counts["not compared"] += 1
        elif content == expected:
            self.counts["identical"] += 1
        else:
            self._wrong("different", f"{kind} {order}: {content!r} instead of {expected!r}")
        if kind != "chat":
            self._check_report(kind, order, report)

    async def _stream(self, body: dict[str, Any], *, hang_up: bool) -> tuple[str, dict[str, Any] | None]:
        pieces, report = [], None
        async with self._client.stream("POST", "/v1/chat/completions", json=body) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                chunk = json.loads(line.removeprefix("data: "))
                report = chunk.get("ooospec", report)
                pieces += [_written(choice["delta"]) for choice in chunk["choices"]]
                if hang_up:
                    return "", None
        return "".join(pieces), report

    def _check_report(self, kind: Kind, order: str, report: dict[str, Any] | None) -> None:
        if report is None:
            self._wrong("reports missing", f"{kind} {order}: no report")
            return
        hint = report["hint"]
        self.counts["hints arrived"] += hint["arrived"]
        if kind == "posted":
            self.counts["posted arrived"] += hint["arrived"]
            if not hint["arrived"]:
                self._wrong("hints lost", f"{order}: its hint was posted before it and did not arrive")
            elif self._recorded is None and report["accepted"].get("hint", 0) < len(order) // 2:
                self._wrong("hints swapped", f"{order}: its hint was not what it was: {report['accepted']}")
        elif "said" in hint and (kind == "server" or self._recorded is None):
            values = [call["slots"].get("order", {}).get("value") for call in hint["said"].get("calls", ())]
            self.counts["unique values seen"] += order in values
            if any(value != order for value in values):
                self._wrong("hints swapped", f"{order}: its hint says {values}")

    def _body(self, kind: Kind, order: str) -> dict[str, Any]:
        if self._recorded is not None and kind != "server":
            content = next(self._prompts)
        elif kind == "chat":
            content = f"Just saying: {order}."
        else:
            content = f"Find {order}, please.\n" + json.dumps({"order": order})
        body: dict[str, Any] = {"model": self._model, "messages": [{"role": "user", "content": content}]}
        body |= {"temperature": 0.0, "max_tokens": self._max_tokens}
        if kind != "chat":
            body |= {"tools": TOOLS, "tool_choice": "required", "vllm_xargs": {"ooospec_report": 1}}
        return body

    def _expected(self, body: dict[str, Any]) -> str | None:
        """The right answer; None where a real target was asked something that occurs once."""
        return scripted_output(body) if self._recorded is None else self._recorded.get(_key(body))

    def _wrong(self, what: str, text: str) -> None:
        self.counts[what] += 1
        if len(self.problems) < 20:
            self.problems.append(text)


async def record(client: httpx.AsyncClient, model: str, prompts: list[str], max_tokens: int = 256) -> dict[str, str]:
    """Undrafted answers of a real target, with tools and without, by prompt and whether it has tools."""
    found: dict[str, str] = {}
    for prompt in prompts:
        for tools in ({}, {"tools": TOOLS, "tool_choice": "required", "vllm_xargs": {"ooospec": "off"}}):
            body = {"model": model, "messages": [{"role": "user", "content": prompt}], "temperature": 0.0}
            body |= {"max_tokens": max_tokens, **tools}
            answer = (await client.post("/v1/chat/completions", json=body)).raise_for_status().json()
            found[_key(body)] = _written(answer["choices"][0]["message"])
    return found


def _key(body: dict[str, Any]) -> str:
    return f"{'tools' if body.get('tools') else 'chat'}: {body['messages'][-1]['content']}"


def _written(message: dict[str, Any]) -> str:
    """What a message or a delta adds to the output: text, and names and arguments of calls."""
    calls = (call.get("function") or {} for call in message.get("tool_calls") or ())
    return (message.get("content") or "") + "".join((c.get("name") or "") + (c.get("arguments") or "") for c in calls)


def levels(most: int) -> Iterator[int]:
    """How many requests at a time: 1, 2, 4 ... up to the most, and again."""
    steps = [level for level in (1, 2, 4, 8, 16, 32) if level < most] + [most]
    return itertools.cycle(steps)


async def at_once(traffic: Traffic, count: int, requests: int) -> None:
    """Make some requests, so many at a time."""
    left = iter(range(requests))

    async def work() -> None:
        for _ in left:
            await traffic.one()

    await asyncio.gather(*(work() for _ in range(count)))
