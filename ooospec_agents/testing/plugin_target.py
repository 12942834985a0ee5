"""A target of our own plugin over a scripted engine: routes, key check, middleware, sockets, proposer and drafter are
the real ones, and no model is needed. `python -m ooospec_agents.testing.plugin_target --port 8000` serves it.

It answers a request that has tools with a call of the first one, whose arguments are the JSON object that ends the last
message, and another request with the last message itself.
"""

from __future__ import annotations

import hmac
import json
import os
import tempfile
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import typer
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from ooospec_agents.formats import FORMATS
from ooospec_agents.testing.engine import ScriptedEngine
from ooospec_agents.vllm_plugin.endpoint import EndpointPlugin
from ooospec_agents.vllm_plugin.launch import SIDECAR_MODEL, SIDECAR_URL
from ooospec_agents.vllm_plugin.sockets import SOCKET_DIR_VARIABLE

PARSER = "hermes"

App = Callable[[Any, Any, Any], Any]


def scripted_output(body: dict[str, Any]) -> str:
    """What the target writes for a chat request."""
    text = str(body["messages"][-1].get("content") or "")
    if not body.get("tools"):
        return text
    start = text.rfind("\n{") + 1 or text.find("{")
    arguments = json.loads(text[start:]) if start >= 0 else {}
    name = body["tools"][0]["function"]["name"]
    return "".join(segment.text for segment in FORMATS[PARSER].write([(name, arguments)]))


class PluginTarget:
    """The server, as an ASGI app.

    Args:
        engine: Decodes.
        api_key: The key that everything under `/v1` asks for, or None.

    Attributes:
        app: The ASGI app.
        plugin: Our plugin in it.
    """

    def __init__(self, engine: ScriptedEngine, api_key: str | None = None) -> None:
        self.engine = engine
        self.plugin = EndpointPlugin()
        app = FastAPI()
        app.add_api_route("/health", lambda: Response())
        app.add_api_route("/metrics", _metrics)
        app.add_api_route("/v1/models", lambda: {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        app.add_api_route("/v1/chat/completions", self._chat, methods=["POST"])
        self.plugin.attach_router(app)
        self.app: App = app if api_key is None else _key_check(app, api_key)
        self._fastapi = app
        self._number = 0

    async def start(self) -> None:
        """Bind the plugin, as vLLM does before it serves."""
        await self.plugin.init_state(self, self._fastapi.state, Namespace(tool_call_parser=PARSER))

    async def collective_rpc(self, method: str) -> list[dict[str, Any]]:
        """Answers as the worker extension does."""
        return [self.engine.proposer.status()]

    async def stop(self) -> None:
        """Close sockets."""
        await self.plugin.accelerator.aclose()
        self.engine.close()

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        output = scripted_output(body)
        self._number += 1
        head = {"id": f"chatcmpl-{self._number}", "created": 1, "model": body.get("model")}
        pieces = self.engine.generate(output, body.get("vllm_xargs") or {}, body.get("max_tokens"))
        if body.get("stream"):
            return StreamingResponse(_events(head, pieces), media_type="text/event-stream")
        text = "".join([piece async for piece in pieces])
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return JSONResponse({**head, "object": "chat.completion", "choices": [choice]})


async def _events(head: dict[str, Any], pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    async for piece in pieces:
        choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
        yield f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"
    yield "data: [DONE]\n\n"


def _metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def _key_check(app: FastAPI, api_key: str) -> App:
    """Outside of all that the plugin adds, as vLLM's own check is."""
    wanted = f"Bearer {api_key}".encode()

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/v1"):
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, wanted):
                await JSONResponse({"error": "Unauthorized"}, 401)(scope, receive, send)
                return
        await app(scope, receive, send)

    return checked


@asynccontextmanager
async def plugin_target(
    *, api_key: str | None = None, sidecar: str | None = None, step_s: float = 0.0
) -> AsyncIterator[PluginTarget]:
    """A target in this process, with a folder of sockets of its own while the block lasts."""
    chosen = {SIDECAR_URL: sidecar or "", SIDECAR_MODEL: "", SOCKET_DIR_VARIABLE: ""}
    before = {name: os.environ.get(name) for name in chosen}
    with tempfile.TemporaryDirectory(prefix="ooo") as folder:
        os.environ.update({**chosen, SOCKET_DIR_VARIABLE: folder})
        target = PluginTarget(ScriptedEngine(step_s=step_s), api_key)
        try:
            await target.start()
            yield target
        finally:
            await target.stop()
            for name, value in before.items():
                os.environ.pop(name, None)
                os.environ.update({name: value} if value is not None else {})


async def _serve(host: str, port: int, api_key: str | None, sidecar: str | None, step_s: float) -> None:
    async with plugin_target(api_key=api_key, sidecar=sidecar, step_s=step_s) as target:
        config = uvicorn.Config(target.app, host, port, log_level="warning", lifespan="off")
        await uvicorn.Server(config).serve()


cli = typer.Typer(add_completion=False)


@cli.command()
def main(
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    api_key: Annotated[str | None, typer.Option(help="The key to ask for.")] = None,
    sidecar: Annotated[str | None, typer.Option(help="URL of a sidecar.")] = None,
    step_ms: Annotated[float, typer.Option(help="Milliseconds that a step takes besides our own work.")] = 0.0,
) -> None:
    """Serve a scripted target with the real plugin."""
    import asyncio

    asyncio.run(_serve(host, port, api_key, sidecar, step_ms / 1e3))


if __name__ == "__main__":
    cli()
