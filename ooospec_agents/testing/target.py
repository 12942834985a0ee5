"""A scripted target: an OpenAI-compatible server on loopback, with or without this project's routes."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ooospec_agents.catalog import Catalog
from ooospec_agents.hint import MAX_HINT_BYTES, REPORT_HEADER, Hint, HintError
from ooospec_agents.sidecar.worker import from_url
from ooospec_agents.testing import responses
from ooospec_agents.testing.deltas import call_id, deltas
from ooospec_agents.testing.loopback import DONE, Answer, Break, LoopbackServer, error, models
from ooospec_agents.testing.script import Received, Reply

Script = Reply | Sequence[Reply] | Callable[[dict[str, Any]], Reply]
"""One reply for all, replies in order (the last repeats), or a function of the request body, in its chat form."""

DEFAULT_REPLY = Reply(content="ok")

MAX_WAITING_HINTS = 64
"""Hints kept for requests that have not come yet; the oldest goes first."""


class ScriptedTarget(LoopbackServer):
    """A target that answers from a script; use it as a context manager.

    Args:
        script: What to answer.
        plugin: Whether it has this project's routes and reports (as `ooospec serve target` has).
        hosted: Refuse the field `vllm_xargs` with 400, as hosted APIs do.
        drafting: What its status route says.
        api_key: The key it asks for, or None for any.
        model: The only model it serves, or None for any.
        status_delay_s: Wait before the status route answers, in seconds.
        sidecar: Address of a sidecar that it asks itself for each request's hint, as the plugin does in server mode.

    Attributes:
        hints: Hints accepted, by request id, in order. A hint for a finished request is dropped.
        reports: The reports made, in order; sent are those that were asked for.
    """

    def __init__(
        self,
        script: Script = DEFAULT_REPLY,
        *,
        plugin: bool = True,
        hosted: bool = False,
        drafting: bool = True,
        api_key: str | None = None,
        model: str | None = None,
        status_delay_s: float = 0.0,
        sidecar: str | None = None,
    ) -> None:
        super().__init__()
        self.hints: OrderedDict[str, list[Hint]] = OrderedDict()
        self.reports: list[dict[str, Any]] = []
        self._script = script
        self._plugin = plugin
        self._hosted = hosted
        self._drafting = drafting
        self._api_key = api_key
        self._model = model
        self._status_delay_s = status_delay_s
        self._sidecar = sidecar
        self._numbers = itertools.count()
        self._finished: OrderedDict[str, None] = OrderedDict()
        self._changed = threading.Condition()

    @property
    def chats(self) -> list[dict[str, Any]]:
        """Bodies of the chat completions asked for, in order."""
        return self.bodies("/v1/chat/completions")

    def respond(self, request: Received) -> Answer:
        """Answer one request."""
        if self._api_key is not None and request.headers.get("authorization") != f"Bearer {self._api_key}":
            return error(401, "Unauthorized")
        if self._plugin and request.path.startswith("/v1/ooospec/"):
            return self._plugin_route(request, request.path.removeprefix("/v1/ooospec/"))
        asked = REPORT_HEADER in request.headers
        match request.method, request.path:
            case "GET", "/health":
                return Answer(text="")
            case "GET", "/v1/models":
                return models((self._model or "scripted",))
            case "POST", "/v1/chat/completions":
                return self._chat(request.body, asked)
            case "POST", "/v1/responses":
                return self._respond_in_items(request.body, asked)
        return error(404, "Not Found")

    def _plugin_route(self, request: Received, route: str) -> Answer:
        if request.method == "GET" and route == "status":
            time.sleep(self._status_delay_s)
            return Answer(json=self._status())
        if request.method == "POST" and route == "prepare":
            tools = request.body.get("tools") if isinstance(request.body, dict) else None
            if not isinstance(tools, list):
                return error(422, "tools must be a list")
            catalog = Catalog.from_tools(tools)
            return Answer(json={"catalog": catalog.id, "functions": len(catalog.functions)})
        if request.method in ("POST", "PUT") and route.startswith("hints/"):
            return self._take_hint(route.removeprefix("hints/"), request)
        return error(404, "Not Found")

    def _status(self) -> dict[str, Any]:
        reason = "" if self._drafting else "scripted: drafting is off"
        status = {"version": "0", "vllm": "scripted", "drafting": self._drafting, "reason": reason}
        return {**status, "wire_format": "hermes", "sidecar": self._sidecar}

    def _take_hint(self, request_id: str, request: Received) -> Answer:
        if int(request.headers.get("content-length", 0)) > MAX_HINT_BYTES:
            return error(413, f"hint too large: at most {MAX_HINT_BYTES} bytes are read")
        try:
            hint = Hint.model_validate(request.body)
        except (ValueError, HintError) as problem:
            return error(422, str(problem))
        with self._changed:
            if request_id not in self._finished:
                self.hints.setdefault(request_id, []).append(hint)
                while len(self.hints) > MAX_WAITING_HINTS:
                    self.hints.popitem(last=False)
                self._changed.notify_all()
        return Answer(status=202, text="")

    def _chat(self, body: Any, asked: bool) -> Answer:
        problem = self._refusal(body)
        if problem is not None:
            return problem
        number, request_id, reply = self._begin(body, body)
        if reply.status != 200:
            return error(reply.status, reply.error)
        head = {"id": f"chatcmpl-{number}", "created": 1, "model": body.get("model")}
        if body.get("stream"):
            return Answer(events=self._events(head, reply, body, request_id, asked))
        if reply.body is not None:
            return Answer(text=reply.body)
        answer = {**head, "object": "chat.completion", "usage": _usage(reply)}
        answer["choices"] = [_choice(reply, index) for index in range(body.get("n") or 1)]
        return Answer(json={**answer, **self._report(request_id, reply, body, asked)})

    def _respond_in_items(self, body: Any, asked: bool) -> Answer:
        """The Responses API; its streams carry no report, as the plugin's do not."""
        problem = self._refusal(responses.as_chat(body) if isinstance(body, dict) else body)
        if problem is not None:
            return problem
        number, request_id, reply = self._begin(body, responses.as_chat(body))
        if reply.status != 200:
            return error(reply.status, reply.error)
        report = self._report(request_id, reply, body, asked)
        if body.get("stream"):
            return Answer(events=self._paced(responses.events(number, reply, body), reply))
        return Answer(json={**responses.response(number, reply, body), **report})

    def _begin(self, body: dict[str, Any], chat: dict[str, Any]) -> tuple[int, str, Reply]:
        """The request's number, its id and its reply, after the waits that the reply asks for."""
        number = next(self._numbers)
        reply = self._reply(number, chat)
        request_id = str(xargs(body).get("ooospec_id") or f"scripted{number}")
        if self._sidecar is not None and chat.get("tools"):
            self._ask_sidecar(self._sidecar, request_id, chat)
        if reply.wait_for_hint_s:
            with self._changed:
                self._changed.wait_for(lambda: request_id in self.hints, reply.wait_for_hint_s)
        time.sleep(reply.delay_s)
        if reply.break_after == 0:
            raise Break
        return number, request_id, reply

    def _ask_sidecar(self, url: str, request_id: str, chat: dict[str, Any]) -> None:
        async def predict() -> Hint | None:
            worker = from_url(url)
            try:
                return await worker.predict(Catalog.from_tools(chat["tools"]), chat["messages"])
            finally:
                await worker.aclose()

        if hint := asyncio.run(predict()):
            with self._changed:
                self.hints.setdefault(request_id, []).append(hint)

    def _paced(self, items: Iterable[Any], reply: Reply) -> Iterator[Any]:
        for sent, item in enumerate(items):
            time.sleep(reply.chunk_delay_s)
            if sent == reply.break_after:
                raise Break
            yield item

    def _refusal(self, body: Any) -> Answer | None:
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            return error(400, "the body must be a JSON object with a list 'messages'")
        if self._model is not None and body.get("model") != self._model:
            return error(404, f"The model `{body.get('model')}` does not exist.")
        if self._hosted and "vllm_xargs" in body:
            return error(400, "Unrecognized request argument supplied: vllm_xargs")
        if not all(isinstance(value, str | int | float | list) for value in xargs(body).values()):
            return error(400, "vllm_xargs takes strings, numbers and lists of them")
        if body.get("tools") == [] or ("tool_choice" in body and "tools" not in body):
            return error(400, "tool_choice needs tools, and tools must not be empty")
        return None

    def _reply(self, number: int, body: dict[str, Any]) -> Reply:
        if isinstance(self._script, Reply):
            return self._script
        if callable(self._script):
            return self._script(body)
        return self._script[min(number, len(self._script) - 1)]

    def _events(
        self, head: Mapping[str, Any], reply: Reply, body: dict[str, Any], request_id: str, asked: bool
    ) -> Iterator[dict[str, Any] | str]:
        head = {**head, "object": "chat.completion.chunk"}
        for delta in self._paced((*deltas(reply), None), reply):
            reason = reply.reason() if delta is None else None
            yield {**head, "choices": [{"index": 0, "delta": delta or {}, "finish_reason": reason}]}
        if (body.get("stream_options") or {}).get("include_usage"):
            yield {**head, "choices": [], "usage": _usage(reply)}
        report = self._report(request_id, reply, body, asked)
        if report:
            yield {**head, "choices": [], **report}
        yield DONE

    def _report(self, request_id: str, reply: Reply, body: dict[str, Any], asked: bool) -> dict[str, Any]:
        with self._changed:
            hints = self.hints.pop(request_id, [])
            self._finished[request_id] = None
            while len(self._finished) > MAX_WAITING_HINTS:
                self._finished.popitem(last=False)
        wanted = (asked and body.get("tools")) or xargs(body).get("ooospec_report")
        if not self._plugin or not (wanted or hints):
            return {}
        method = xargs(body).get("ooospec", "ooospec" if body.get("tools") else "off")
        report = scripted_report(request_id, reply, hints, str(method))
        self.reports.append(report)
        return {"ooospec": report} if wanted else {}


def xargs(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body's `vllm_xargs`, or an empty dict."""
    given = body.get("vllm_xargs")
    return given if isinstance(given, dict) else {}


def scripted_report(request_id: str, reply: Reply, hints: Sequence[Hint], method: str) -> dict[str, Any]:
    """The report of one request: a hint counts as used where it names the function that was called.

    Two thirds of the tokens (rounded down) are then reported as drafted and accepted from the hint.
    """
    called = {call.name for call in reply.calls}
    used = any(call.name in called for hint in hints for call in hint.calls)
    tokens = reply.token_count()
    accepted = tokens * 2 // 3 if used else 0
    drafted = {"hint": accepted} if used else {}
    sources = ["hint"] * accepted + ["target"] * (tokens - accepted)
    arrival = {"arrived": bool(hints), "at_token": 0 if hints else None, "used": used}
    return {
        "id": request_id,
        "method": method,
        "wire_format": "hermes",
        "steps": tokens - accepted,
        "tokens": tokens,
        "drafted": drafted,
        "accepted": dict(drafted),
        "hint": {**arrival, "after_ms": 1.0 if hints else None},
        "draft_ms_max": 0.1,
        "draft_ms_total": 0.1,
        "ahead_ms": 0.1,
        "timeline": [[0.0, tokens, accepted, accepted]],
        "token_sources": sources,
    }


def _choice(reply: Reply, index: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.reasoning is not None:
        message["reasoning"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call_id(call, position),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_text()},
            }
            for position, call in enumerate(reply.calls)
        ]
    return {"index": index, "message": message, "finish_reason": reply.reason(), "logprobs": None}


def _usage(reply: Reply) -> dict[str, int]:
    tokens = reply.token_count()
    return {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
