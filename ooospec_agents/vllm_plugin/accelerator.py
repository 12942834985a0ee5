"""What an API process does for a request: it tells the worker what is known of it, and has hints made."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ooospec_agents.catalog import Catalog
from ooospec_agents.chat_request import forced_function, messages_of
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.guesses import Guesser, LexicalGuesses
from ooospec_agents.drafting.request import Method, RequestSpec
from ooospec_agents.formats import choose_format
from ooospec_agents.hint import Hint
from ooospec_agents.predictor.merge import merge
from ooospec_agents.vllm_plugin.accounts import Accounts
from ooospec_agents.vllm_plugin.ceiling import replay_allowed
from ooospec_agents.vllm_plugin.chat_body import BodyError, Wishes, take_wishes, tools_of
from ooospec_agents.vllm_plugin.faults import Faults
from ooospec_agents.vllm_plugin.holdout import Group, Holdout
from ooospec_agents.vllm_plugin.tenancy import TENANT_HEADER, internal_id, tenant_of

if TYPE_CHECKING:
    from ooospec_agents.predictor.worker import PredictorWorker
    from ooospec_agents.sidecar.gate import WaveGate
    from ooospec_agents.sidecar.worker import SidecarWorker
    from ooospec_agents.vllm_plugin.channel import ApiChannel
    from ooospec_agents.vllm_plugin.metrics import Metrics

MAX_CATALOGS = 256
"""Catalogs kept in an API process, least recently used out first."""
MAX_GUESSING = 8
"""Requests for which guesses are made at once; beyond them the drafter guesses for itself."""
REPORT_GRACE_S = 0.005
"""Longest wait for a report. It left the worker before the last token did, so it is nearly always there."""


@dataclass
class Ticket:
    """A request that was announced to the worker.

    Attributes:
        id: Its internal id.
        wants_report: Whether the response shall carry the report.
        hints: What was predicted for it so far, by who did.
        prediction: The span predictor's work on it, if there is any.
        wave: Its wave, if it has one.
        began: When the wave began, in monotonic seconds.
        wave_s: Seconds until the wave's hint came, or None.
        hint: What was said of it last, or None.
        group: Its group, where a holdout compares two.
        report: What the worker said of it, once it did.
    """

    id: str
    wants_report: bool
    hints: dict[str, Hint] = field(default_factory=dict)
    prediction: Future[None] | None = None
    wave: Future[None] | None = None
    began: float = 0.0
    wave_s: float | None = None
    hint: Hint | None = None
    group: Group | None = None
    report: dict[str, Any] | None = None


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
        self._accounts = Accounts(self.faults)
        self._channel: ApiChannel | None = None
        self._sidecar: SidecarWorker | None = None
        self._predictor: PredictorWorker | None = None
        self._method: Method = "ooospec"
        self._gate: WaveGate | None = None
        self._tenant_header = os.environ.get(TENANT_HEADER, "")
        self._catalogs: OrderedDict[bytes, Catalog] = OrderedDict()
        self._guesser = ThreadPoolExecutor(1, "ooospec-guesses")
        self._guessing = 0
        self._further = ""

    def start(
        self,
        channel: ApiChannel | None,
        *,
        reason: str = "",
        tool_call_parser: str | None = None,
        sidecar: SidecarWorker | None = None,
        gate: WaveGate | None = None,
        predictor: PredictorWorker | None = None,
        method: Method = "ooospec",
        holdout: Holdout | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Begin to work; without a channel, say why requests pass untouched.

        Args:
            channel: The road to the worker, or None.
            reason: Why there are no drafts, or "".
            tool_call_parser: vLLM's flag of that name.
            sidecar: Makes hints for every request, or None.
            gate: Decides which requests have a wave, where waves take the target's own cores; None: all have.
            predictor: Makes a first hint for every request in this process, or None.
            method: How requests are drafted that do not say so themselves.
            holdout: Serves a share of requests undrafted; None: no request.
            metrics: Where requests are counted, or None.
        """
        self.drafting = channel is not None and not reason
        self.reason = reason
        self.tool_call_parser = tool_call_parser
        self._channel = channel
        self._sidecar = sidecar
        self._gate = gate
        self._predictor = predictor
        self._method = method
        self._accounts = Accounts(self.faults, metrics, holdout)
        if channel is not None:
            channel.on_news = self._accounts.news
        self._accounts.show(self._sizes, drafting=self.drafting)

    @property
    def holdout(self) -> Holdout:
        """Compares drafted requests with undrafted ones."""
        return self._accounts.holdout

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
        group = self.holdout.group() if self.holdout.share and wishes.method is None and tools_of(body) else None
        spec = self._spec(body, wishes, tenant, group)
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
        ticket = Ticket(spec.id, wishes.report, group=group if group == "holdout" or spec.method != "off" else None)
        self._accounts.opened(spec.method, group)
        self._start_guesses(spec)
        if wishes.hint:
            self._post_text(ticket, wishes.hint)
        elif spec.method == "ooospec" and not wishes.client_id:
            self._start_prediction(ticket, spec, messages_of(body))
            self._start_wave(ticket, spec, messages_of(body))
        return ticket

    def tenant(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Whose request it is, by its headers as ASGI has them."""
        return tenant_of(headers, self._tenant_header)

    def finish(self, ticket: Ticket) -> None:
        """The response is over: a hint would be of no use any more."""
        for work in (ticket.prediction, ticket.wave):
            if work is not None:
                work.cancel()
        if self._further == ticket.id:
            self._further = ""
        judged = self._gate is not None and ticket.wave is not None
        if self._channel is not None and ticket.report is None and (judged or self._accounts.counting or ticket.group):
            ticket.report = self._channel.take_report(ticket.id)
            self._judge(ticket, ticket.report)
        self._accounts.over(ticket.report, ticket.group, hinted=ticket.hint is not None)
        self._accounts.show(self._sizes, drafting=self.drafting)

    def hint(self, tenant: str, client_id: str, hint: Hint) -> None:
        """Pass on a client's hint. The worker keeps it for a moment if the request is yet to come."""
        if self._channel is not None:
            self._channel.hint(internal_id(tenant, client_id), hint)
            self._accounts.hint("client")

    def prepare(self, tools: Sequence[Any]) -> Catalog:
        """Read tools ahead of the request that will bind them, and have the predictors do their parts."""
        catalog = self._catalog(tools)
        if self._predictor is not None:
            self._predictor.prepare(catalog)
        if self._sidecar is not None:
            self._sidecar.prepare(catalog)
        return catalog

    async def report(self, ticket: Ticket) -> dict[str, Any] | None:
        """What became of a request that is over, or None if the worker has not said so."""
        if self._channel is None:
            return None
        report = await self._channel.report(ticket.id, REPORT_GRACE_S)
        self._judge(ticket, report)
        ticket.report = report
        if report is not None and ticket.group == "holdout":
            report = {**report, "holdout": True}
        if report is not None and ticket.hint is not None:
            said: dict[str, Any] = {"said": ticket.hint.model_dump(mode="json", exclude_defaults=True)}
            if ticket.wave_s is not None:
                said["wave_ms"] = ticket.wave_s * 1e3
            report = {**report, "hint": {**report.get("hint", {}), **said}}
        return report

    async def aclose(self) -> None:
        """Give up waves and close the sockets."""
        channel, self._channel = self._channel, None
        sidecar, self._sidecar = self._sidecar, None
        predictor, self._predictor = self._predictor, None
        self.drafting = False
        self._guesser.shutdown(wait=False, cancel_futures=True)
        if predictor is not None:
            await predictor.aclose()
        if sidecar is not None:
            await sidecar.aclose()
        if channel is not None:
            channel.close()

    def _spec(self, body: dict[str, Any], wishes: Wishes, tenant: str, group: Group | None) -> RequestSpec | None:
        tools = tools_of(body)
        if not tools and not wishes.report and wishes.replay is None:
            return None
        choice = body.get("tool_choice")
        wire_format = choose_format(self.tool_call_parser, choice, body.get("response_format"), has_tools=bool(tools))
        named = forced_function(choice)
        method: Method = wishes.method or self._method
        if wire_format is None or (isinstance(choice, dict) and not named):
            method = "off"
        elif group == "holdout":  # announced all the same: its report is what the others are compared with
            return RequestSpec(id=_id(tenant, wishes), tenant=tenant, method="off")
        if method == "off" and not wishes.report and wishes.replay is None:
            return None
        spec = RequestSpec(
            id=_id(tenant, wishes),
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

    def _start_guesses(self, spec: RequestSpec) -> None:
        """Guess in a thread what the drafter would else guess while all requests of the engine wait for it."""
        if spec.method not in ("lexical", "ooospec") or not spec.catalog.functions or self._guessing >= MAX_GUESSING:
            return
        try:
            guesser = Guesser(spec.catalog, spec.conversation)
            done = asyncio.get_running_loop().run_in_executor(self._guesser, guesser.first)
        except RuntimeError:  # no loop here, or closed: the drafter guesses for itself
            return
        self._guessing += 1
        self._further = ""
        done.add_done_callback(lambda future: self._guessed_first(spec.id, guesser, future))

    def _guessed_first(self, request_id: str, guesser: Guesser, done: asyncio.Future[LexicalGuesses]) -> None:
        self._guessing -= 1
        if self._guessed(request_id, done) and not self._guessing:
            self._further = request_id
            self._guess_on(request_id, guesser)

    def _guess_on(self, request_id: str, guesser: Guesser) -> None:
        """Guess the values of less likely functions, too, while nobody waits and the request is not over."""
        if self._further != request_id:
            return
        try:
            done = asyncio.get_running_loop().run_in_executor(self._guesser, guesser.further)
        except RuntimeError:  # closed meanwhile
            return

        def guessed(done: asyncio.Future[LexicalGuesses | None]) -> None:
            if self._guessed(request_id, done):
                self._guess_on(request_id, guesser)

        done.add_done_callback(guessed)

    def _guessed(self, request_id: str, done: asyncio.Future[Any]) -> bool:
        """Pass guesses on; whether there were any."""
        if done.cancelled() or self._channel is None:
            return False
        error = done.exception()
        if isinstance(error, Exception):
            self.faults.swallow("guesses", error)
        if error is not None or done.result() is None:
            return False
        return self._channel.guesses(request_id, done.result())

    def _start_prediction(self, ticket: Ticket, spec: RequestSpec, messages: Sequence[Any]) -> None:
        if self._predictor is None:
            return

        def deliver(hint: Hint) -> None:
            self._predicted(ticket, "span", hint)

        ticket.prediction = self._predictor.submit(
            spec.catalog, messages, deliver, named=spec.named, no_call_allowed=not spec.required
        )

    def _predicted(self, ticket: Ticket, source: str, hint: Hint) -> None:
        """Send what all have said so far: a later hint replaces an earlier one where it is more certain."""
        ticket.hints[source] = hint
        self._accounts.hint(source)
        merged = merge(tuple(ticket.hints.values()))
        if merged is not None:
            ticket.hint = merged
            self._post(ticket.id, merged)

    def _start_wave(self, ticket: Ticket, spec: RequestSpec, messages: Sequence[Any]) -> None:
        if self._sidecar is None or (self._gate is not None and not self._gate.allow()):
            return

        def deliver(hint: Hint) -> None:
            ticket.wave_s = time.monotonic() - ticket.began
            self._predicted(ticket, "sidecar", hint)

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

    def _post_text(self, ticket: Ticket, text: str) -> None:
        try:
            hint = Hint.parse(text)
        except ValueError as error:
            self.faults.swallow("vllm_xargs.ooospec_hint", error)
            return
        self._accounts.hint("request")
        self._post(ticket.id, hint)

    def _sizes(self) -> dict[str, int]:
        kept = {"catalogs": len(self._catalogs), "guessing": self._guessing, "holdout": len(self.holdout)}
        return kept | (self._channel.sizes() if self._channel is not None else {})


def _id(tenant: str, wishes: Wishes) -> str:
    return internal_id(tenant, wishes.client_id) if wishes.client_id else uuid.uuid4().hex
