"""Our routes in vLLM's server, under `/v1` and so behind its key check."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response

from ooospec_agents._version import __version__
from ooospec_agents.formats import choose_format
from ooospec_agents.hint import MAX_HINT_BYTES, Hint, HintError
from ooospec_agents.vllm_plugin.accelerator import Accelerator
from ooospec_agents.vllm_plugin.holdout import Holdout

MAX_TOOLS_BYTES = 1024 * 1024
"""Largest body of a `prepare` request."""


def build_router(accelerator: Accelerator, *, vllm_version: str, sidecar_url: str | None) -> APIRouter:
    """The routes `prepare`, `hints` and `status`.

    Args:
        accelerator: Does the work.
        vllm_version: The version of the server, for `status`.
        sidecar_url: The address of the server's own sidecar, for `status`.
    """
    router = APIRouter(prefix="/v1/ooospec")

    @router.post("/prepare")
    async def prepare(request: Request) -> dict[str, Any]:
        try:
            body = json.loads(await _read(request, MAX_TOOLS_BYTES, "tools"))
        except (ValueError, RecursionError) as error:
            raise HTTPException(422, f"the body is not JSON: {error}") from None
        tools = body.get("tools") if isinstance(body, dict) else None
        if not isinstance(tools, list):
            raise HTTPException(422, 'the body must be an object with a list "tools"')
        catalog = accelerator.prepare(tools)
        return {"catalog": catalog.id, "functions": len(catalog.functions)}

    @router.api_route("/hints/{request_id}", methods=["PUT", "POST"], status_code=202)
    async def post_hint(request_id: str, request: Request) -> Response:
        text = await _read(request, MAX_HINT_BYTES, "hint")
        try:
            hint = Hint.parse(text)
        except HintError as error:
            raise HTTPException(422, str(error)) from None
        accelerator.hint(accelerator.tenant(request.scope["headers"]), request_id, hint)
        return Response(status_code=202)

    @router.get("/status")
    async def status() -> dict[str, Any]:
        return {
            "version": __version__,
            "vllm": vllm_version,
            "drafting": accelerator.drafting,
            "reason": accelerator.reason,
            "tool_call_parser": accelerator.tool_call_parser,
            "wire_format": choose_format(accelerator.tool_call_parser, "auto"),
            "sidecar": sidecar_url,
            "faults": dict(accelerator.faults.counts),
            "holdout": _holdout(accelerator.holdout),
        }

    return router


def _holdout(holdout: Holdout) -> dict[str, Any] | None:
    if not holdout.share:
        return None
    gain = holdout.gain()
    return {"share": holdout.share, "gain": gain and gain[0], "requests": len(holdout), "switched_off": holdout.off}


async def _read(request: Request, limit: int, what: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise HTTPException(413, f"{what} refused: more than {limit} bytes")
        pieces.append(piece)
    return b"".join(pieces)
