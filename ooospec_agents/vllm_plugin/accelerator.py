"""What an API process does for a request: it tells the worker what is known of it, and has hints made."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.request import Method, RequestSpec
from ooospec_agents.formats import choose_format
from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin.ceiling import replay_allowed
from ooospec_agents.vllm_plugin.chat_body import (
    BodyError,
    Wishes,
    forced_function,
    messages_of,
    take_wishes,
    tools_of,
)
from ooospec_agents.vllm_plugin.faults import Faults
from ooospec_agents.vllm_plugin.tenancy import internal_id

if TYPE_CHECKING:
    from ooospec_agents.sidecar.gate import WaveGate
    from ooospec_agents.sidecar.worker import SidecarWorker
    from ooospec_agents.vllm_plugin.channel import ApiChannel

MAX_CATALOGS = 256
"""Catalogs kept in an API process, least recently used out first."""
REPORT_GRACE_S = 0.005
"""Longest wait for a report. It left the worker before the last token did, so it is nearly always there."""


@dataclass
class Ticket:
    """A request that was announced to the worker.

    Attributes:
        id: Its internal id.
        wants_report: Whether the response shall carry the report.
        wave: Its wave, if it has one.
        began: When the wave began, in monotonic seconds.
        wave_s: Seconds until the wave's hint came, or None.
        hint: The wave's hint, or None.
    """

    id: str
    wants_report: bool
    wave: Future[None] | None = None
    began: float = 0.0
    wave_s: float | None = None
    hint: Hint | None = None


class Accelerator:
    """One in each API process. Holds no state of requests: what is known of them is the worker's to keep.

    Attributes:
        faults: What went wrong and was swallowed.
        drafting: Whether the worker drafts at all.
        reason: Why not, or "".
    """

    def __init__(self) -> None:
        """Idle until `start`: every request passes untouched."""
        self.faults = Faults()
        self.drafting = False
        self.reason = "the server is still starting"
        self.tool_call_parser: str | None = None
        self._channel: ApiChannel | None = None
        self._sidecar: SidecarWorker | None = None
        self._gate: WaveGate | None = None
        self._catalogs: OrderedDict[bytes, Catalog] = OrderedDict()

    def start(
        self,
        channel: ApiChannel | None,
        *,
        reason: str = "",
        tool_call_parser: str | None = None,
        sidecar: SidecarWorker | None = None,
        gate: WaveGate | None = None,
    ) -> None:
        """Begin to work; without a channel, say why requests pass untouched.

        Args:
            channel: The road to the worker, or None.
            reason: Why there are no drafts, or "".
            tool_call_parser: vLLM's flag of that name.
            sidecar: Makes hints for every request, or None.
            gate: Decides which requests have a wave, where waves take the target's own cores; None: all have.
        """
        self.drafting = channel is not None and not reason
        self.reason = reason
        self.tool_call_parser = tool_call_parser
        self._channel = channel
        self._sidecar = sidecar
        self._gate = gate

    def begin(self, body: dict[str, Any], tenant: str, *, wants_report: bool = False) -> Ticket | None:
        """Announce a request, and put its stamp into `body["vllm_xargs"]`. None: it is not ours to draft.

        Args:
            body: The request's JSON body; changed in place.
            tenant: Whose request it is.
            wants_report: Whether the report was asked for outside the body.
        """
        try:
            wishes = take_wishes(body)
        except BodyError as error:
            self.faults.swallow("vllm_xargs", error)
            return None
        if wants_report:
            wishes = replace(wishes, report=True)
        spec = self._spec(body, wishes, tenant)
        if self._channel is None or not self.drafting or spec is None:
            return None
        xargs: dict[str, Any] = {"ooospec_id": spec.id}
        if wishes.replay is not None and replay_allowed():
            xargs["ooospec_replay"] = wishes.replay
        if wishes.seeded:
            xargs["ooospec_seeded"] = 1
        # First the message, then the stamp: without one of them the request is an ordinary one.
        if not self._channel.open(spec):
            return None
        body["vllm_xargs"] = {**(body.get("vllm_xargs") or {}), **xargs}
        ticket = Ticket(spec.id, wishes.report)
        if wishes.hint:
            self._post_text(spec.id, wishes.hint)
        elif spec.method == "ooospec" and not wishes.client_id:
            self._start_wave(ticket, spec, messages_of(body))
        return ticket

    def finish(self, ticket: Ticket) -> None:
        """The response is over: a hint would be of no use any more."""
        if ticket.wave is None:
            return
        ticket.wave.cancel()
        if self._gate is not None and self._channel is not None and not ticket.wants_report:
            self._judge(ticket, self._channel.take_report(ticket.id))

    def hint(self, tenant: str, client_id: str, hint: Hint) -> None:
        """Pass on a client's hint. The worker keeps it for a moment if the request is yet to come."""
        if self._channel is not None:
            self._channel.hint(internal_id(tenant, client_id), hint)

    def prepare(self, tools: Sequence[Any]) -> Catalog:
        """Read tools ahead of the request that will bind them, and have the sidecar do its part."""
        catalog = self._catalog(tools)
        if self._sidecar is not None:
            self._sidecar.prepare(catalog)
        return catalog

    async def report(self, ticket: Ticket) -> dict[str, Any] | None:
        """What became of a request that is over, or None if the worker has not said so."""
        if self._channel is None:
            return None
        report = await self._channel.report(ticket.id, REPORT_GRACE_S)
        self._judge(ticket, report)
        if report is not None and ticket.hint is not None and ticket.wave_s is not None:
            said = {"said": ticket.hint.model_dump(mode="json", exclude_defaults=True), "wave_ms": ticket.wave_s * 1e3}
            report = {**report, "hint": {**report.get("hint", {}), **said}}
        return report

    async def aclose(self) -> None:
        """Give up waves and close the sockets."""
        channel, self._channel = self._channel, None
        sidecar, self._sidecar = self._sidecar, None
        self.drafting = False
        if sidecar is not None:
            await sidecar.aclose()
        if channel is not None:
            channel.close()

    def _spec(self, body: dict[str, Any], wishes: Wishes, tenant: str) -> RequestSpec | None:
        tools = tools_of(body)
        if not tools and not wishes.report and wishes.replay is None:
            return None
        choice = body.get("tool_choice")
        wire_format = choose_format(self.tool_call_parser, choice, body.get("response_format"), has_tools=bool(tools))
        named = forced_function(choice)
        method: Method = wishes.method or "ooospec"
        if wire_format is None or (isinstance(choice, dict) and not named):
            method = "off"
        if method == "off" and not wishes.report and wishes.replay is None:
            return None
        spec = RequestSpec(
            id=internal_id(tenant, wishes.client_id) if wishes.client_id else uuid.uuid4().hex,
            tenant=tenant,
            scope=wishes.scope,
            method=method,
            wire_format=wire_format or "json",
            required=choice == "required" or bool(named),
            named=named,
            parallel=body.get("parallel_tool_calls") is not False,
        )
        if method in ("off", "ceiling"):  # these know nothing, and must not cost more than that
            return spec
        return replace(spec, catalog=self._catalog(tools), conversation=conversation_text(messages_of(body)))

    def _catalog(self, tools: Sequence[Any]) -> Catalog:
        key = hashlib.sha256(json.dumps(tools).encode("ascii")).digest()
        catalog = self._catalogs.get(key)
        if catalog is None:
            catalog = Catalog.from_tools(tools)
            self._catalogs[key] = catalog
            if len(self._catalogs) > MAX_CATALOGS:
                self._catalogs.popitem(last=False)
        else:
            self._catalogs.move_to_end(key)
        return catalog

    def _start_wave(self, ticket: Ticket, spec: RequestSpec, messages: Sequence[Any]) -> None:
        if self._sidecar is None or (self._gate is not None and not self._gate.allow()):
            return

        def deliver(hint: Hint) -> None:
            ticket.wave_s = time.monotonic() - ticket.began
            ticket.hint = hint
            self._post(spec.id, hint)

        ticket.began = time.monotonic()
        ticket.wave = self._sidecar.submit(
            spec.catalog, messages, deliver, named=spec.named, no_call_allowed=not spec.required
        )

    def _judge(self, ticket: Ticket, report: dict[str, Any] | None) -> None:
        """Let the gate learn what a wave took and what it brought."""
        if self._gate is not None and ticket.wave is not None and report is not None:
            took = time.monotonic() - ticket.began if ticket.wave_s is None else ticket.wave_s
            self._gate.record(took, report)

    def _post(self, request_id: str, hint: Hint) -> None:
        if self._channel is not None:
            self._channel.hint(request_id, hint)

    def _post_text(self, request_id: str, text: str) -> None:
        try:
            self._post(request_id, Hint.parse(text))
        except ValueError as error:
            self.faults.swallow("vllm_xargs.ooospec_hint", error)
