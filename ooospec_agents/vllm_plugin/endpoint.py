"""The endpoint plugin: vLLM's seam for routes, and for the middleware that does an API process's part.

A middleware added in `attach_router` runs after vLLM's key check; one of `--middleware` runs before it.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from ooospec_agents.drafting.request import Method
from ooospec_agents.predictor.folder import PredictorError, find, loader
from ooospec_agents.predictor.worker import PredictorWorker
from ooospec_agents.sidecar.gate import WaveGate
from ooospec_agents.sidecar.wave import MANY
from ooospec_agents.sidecar.worker import SidecarWorker, from_url
from ooospec_agents.vllm_plugin.accelerator import Accelerator
from ooospec_agents.vllm_plugin.channel import SOCKET_DIR_VARIABLE, ApiChannel
from ooospec_agents.vllm_plugin.holdout import HOLDOUT, Holdout, read_share
from ooospec_agents.vllm_plugin.launch import (
    LEXICAL,
    NO_GUESSES,
    OFF,
    PLUGIN_NAME,
    PREDICTOR,
    SIDECAR_API_KEY,
    SIDECAR_MODEL,
    SIDECAR_SHARES,
    SIDECAR_URL,
    SOCKET_DIR_PREFIX,
    switched_off,
    vllm_version,
)
from ooospec_agents.vllm_plugin.metrics import Metrics, process_metrics
from ooospec_agents.vllm_plugin.middleware import Middleware
from ooospec_agents.vllm_plugin.routes import build_router

# Under vLLM's own logger: its handlers and level then hold, and users see whether drafting is on.
logger = logging.getLogger("vllm.ooospec_agents")


class EndpointPlugin:
    """What vLLM asks of an endpoint plugin.

    Attributes:
        name: The name under which `VLLM_PLUGINS` allows it.
        required_tasks: It is of use only where text is generated.
    """

    name = PLUGIN_NAME
    required_tasks = ("generate",)

    def __init__(self) -> None:
        """One in each API process."""
        self.accelerator = Accelerator()

    def attach_router(self, app: FastAPI) -> None:
        """Add our routes and our middleware."""
        app.add_middleware(Middleware, accelerator=self.accelerator)
        router = build_router(self.accelerator, vllm_version=vllm_version(), sidecar_url=os.environ.get(SIDECAR_URL))
        app.include_router(router)

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        """Bind the workers' proposers, open the road to them. Never raises: the server serves either way."""
        parser = getattr(args, "tool_call_parser", None)
        channel, reason = None, ""
        try:
            reason = f"{OFF} is set" if switched_off() else await _bind(engine_client)
            if not reason:
                channel = ApiChannel(local_ranks(args))
        except Exception as error:
            logger.warning("ooospec: not bound", exc_info=error)
            reason = f"{type(error).__name__}: {error}"
        sidecar = self._sidecar() if not reason else None
        gate = WaveGate() if sidecar is not None and _shares_cores() else None
        predictor = self._predictor() if not reason else None
        self.accelerator.start(
            channel,
            reason=reason,
            tool_call_parser=parser,
            sidecar=sidecar,
            gate=gate,
            predictor=predictor,
            method=_default_method(),
            holdout=self._holdout(),
            metrics=self._metrics(),
        )
        atexit.register(remove_sockets)
        if reason:
            logger.warning("ooospec: requests are served without drafts: %s", reason)
        else:
            sources = ["the span predictor"] if predictor else []
            sources += [f"the sidecar at {os.environ[SIDECAR_URL]!r}"] if sidecar else []
            hints = f"hints from {' and '.join(sources)}" if sources else "no sidecar, no span predictor"
            logger.info("ooospec: drafting is on for tool calls (parser %r, %s)", parser, hints)

    def _metrics(self) -> Metrics | None:
        try:
            return process_metrics()
        except Exception as error:
            self.accelerator.faults.swallow("metrics", error, ours=True)
            return None

    def _holdout(self) -> Holdout:
        try:
            return Holdout(read_share(os.environ.get(HOLDOUT, "0")))
        except ValueError as error:
            self.accelerator.faults.swallow("holdout", error, ours=True)
            return Holdout()

    def _predictor(self) -> PredictorWorker | None:
        folder = os.environ.get(PREDICTOR, LEXICAL)
        if folder in (LEXICAL, NO_GUESSES):
            return None
        try:
            return PredictorWorker(loader(find(Path(folder))))
        except PredictorError as error:
            self.accelerator.faults.swallow("predictor", error, ours=True)
            return None

    def _sidecar(self) -> SidecarWorker | None:
        url = os.environ.get(SIDECAR_URL)
        if not url:
            return None
        try:
            model, key = os.environ.get(SIDECAR_MODEL), os.environ.get(SIDECAR_API_KEY)
            # On the target's own cores each question costs the target time.
            return from_url(url, model, key, many=0 if _shares_cores() else MANY)
        except ValueError as error:
            self.accelerator.faults.swallow("sidecar", error, ours=True)
            return None


def _default_method() -> Method:
    return "toolspec" if os.environ.get(PREDICTOR) == NO_GUESSES else "ooospec"


def _shares_cores() -> bool:
    return os.environ.get(SIDECAR_SHARES) == "1"


def create() -> EndpointPlugin:
    """The factory that vLLM finds by its entry point."""
    return EndpointPlugin()


async def _bind(engine_client: Any) -> str:
    """Bind the proposers of all workers; why there are no drafts, or ""."""
    if engine_client is None:
        return "this server has no engine"
    answers = await engine_client.collective_rpc("ooospec_bind")
    if any(answer["drafting"] for answer in answers):
        return ""
    return "; ".join(sorted({str(answer["reason"]) for answer in answers})) or "no worker answered"


def local_ranks(args: Namespace) -> range:
    """The data-parallel ranks behind this server on this machine, by vLLM's flags."""

    def given(name: str) -> int | None:
        return getattr(args, f"data_parallel_{name}", None)

    if (only := given("rank")) is not None:  # one server a rank, behind a balancer of the operator's
        return range(only, only + 1)
    first = given("start_rank") or 0
    return range(first, first + (given("size_local") or given("size") or 1))


def remove_sockets() -> None:
    """Remove the folder of the sockets when the server ends."""
    folder = Path(os.environ.get(SOCKET_DIR_VARIABLE, ""))
    if folder.name.startswith(SOCKET_DIR_PREFIX):  # one of ours, and no folder that a user chose
        shutil.rmtree(folder, ignore_errors=True)
