"""Methods in pairs: every request is answered by every method, one after the other, the order rotated.

The rules of the comparison:

- Prompt KV is cached for all alike: before a request is timed, each server answers it once with one token,
  not drafting, which starts no wave and enters no history.
- Stores are cold: each timed request has a scope of its own. Or they are warm: one store a method, filled from one
  list of other dialogues, the same for all; what was asked since is in it too, in the same order for all.
- The wave starts with the timed request; the sidecar may hold the tools and the turns before the last message.
- `Ledger` checks that no answer was known before it was asked; only the limits (perfect, degraded, wrong, ceiling) get
  the recorded output, and gold the reference.
- Every request counts, also those answered in text.
- A request is timed when all servers are asleep (`rest.py`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import httpx

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.ledger import Decode, Ledger
from ooospec_agents.bench.methods import BenchMethod, Kind
from ooospec_agents.bench.rawlog import RawLog
from ooospec_agents.bench.requests import Answer, ask, chat_body, with_xargs, written_text
from ooospec_agents.bench.rest import Rest
from ooospec_agents.bench.servers import Server
from ooospec_agents.bench.waves import RecordedWave, SidecarProbe, posted_after

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is asked and how.

    Attributes:
        methods: The methods, in their first order.
        tool_choice: "auto" or "required".
        max_tokens: Most output tokens of a request.
        stream: Whether answers are streamed.
        cached: Whether the prompt's KV is warmed; False: every request is prefilled anew.
        warm: Other dialogues that fill each method's store first; None: stores are cold.
        setting: "own": hints are replayed at the delays that they took alone; "shared": the sidecar runs beside;
            "both": the latter for methods that say so.
        seed: Of degraded hints.
    """

    methods: Sequence[BenchMethod]
    tool_choice: str = "auto"
    max_tokens: int = 256
    stream: bool = False
    cached: bool = True
    warm: Sequence[Item] | None = None
    setting: str = "shared"
    seed: str = "0"

    def beside(self, method: BenchMethod) -> bool:
        """Whether the sidecar runs beside the target while this method is asked."""
        return method.hint == "sidecar" and (self.setting == "shared" or method.beside)


@dataclass
class Helpers:
    """What a run uses beside the targets.

    Attributes:
        probe: The running sidecar, to be warmed before a request; None: there is none.
        sidecar: Its server, whose processor time is counted.
        waves: Recorded answers of the sidecar by data set and request, to be replayed.
        decode: The target's tokenizer, to trace remembered tokens to the calls they came from.
    """

    probe: SidecarProbe | None = None
    sidecar: Server | None = None
    waves: Mapping[tuple[str, str], RecordedWave] = field(default_factory=dict)
    decode: Decode | None = None


class PairedRun:
    """One run over running servers. Resumes what stands in the raw log."""

    def __init__(
        self,
        servers: Mapping[Kind, Server],
        plan: Plan,
        client: httpx.Client,
        raw: RawLog,
        helpers: Helpers | None = None,
    ) -> None:
        self._servers = servers
        self._plan = plan
        self._client = client
        self._raw = raw
        self._helpers = helpers or Helpers()
        self._ledger = Ledger(cold=plan.warm is None, decode=self._helpers.decode)
        self._filled: set[str] = set()
        self._rest = Rest()
        # A server that was started anew has forgotten all: what it learns from now on is a new store.
        self._run_id = uuid.uuid4().hex

    def run(self, items: Sequence[Item], progress: Progress = lambda _: None) -> None:
        """Answer every item by every method, except those already in the raw log.

        Raises:
            Leak: A method saw an answer before it was asked.
            RequestFailed: A server went away.
        """
        methods = [m for m in self._plan.methods if m.server in self._servers]
        for turn, item in enumerate(items):
            todo = [m for m in methods if not self._done(m, item)]
            if not todo:
                continue
            if self._plan.warm is not None:
                for method in todo:
                    self._fill(method, items[:turn], progress)
            if self._plan.cached:
                hinted = any(m.hint == "span" or self._plan.beside(m) for m in todo)
                self._warm(item, {m.server for m in todo}, prepare=hinted)
            first = turn % len(todo)
            plain = None
            # What is given the plain output comes after it: it is the timed one where there is one.
            for method in sorted([*todo[first:], *todo[:first]], key=lambda m: m.needs_recording):
                if method.needs_recording and plain is None:
                    plain = self._record(item)
                answer = self._ask_timed(method, item, plain)
                progress(
                    f"{item.id} {method.name}: {answer.wall_s:.2f} s, "
                    f"{len(answer.token_ids)} tokens in {answer.steps} steps"
                )

    def _done(self, method: BenchMethod, item: Item) -> bool:
        return self._raw.find(item=item.id, dataset=item.dataset, method=method.name) is not None

    def _record(self, item: Item) -> Answer:
        """The plain output that the limits are given; recorded once, on a server that no method learns on.

        Where it has been timed, that answer is taken.
        """
        for name in ("record", "ar") if "stock" in self._servers else ("record", "ar", "off"):
            row = self._raw.find(item=item.id, dataset=item.dataset, method=name)
            if row is not None:
                known = Answer(**row["answer"])
                server = next(iter(self._servers.values()))
                known.text = known.text or written_text(self._client, server.url, server.model, known)
                return known
        kind: Kind = "stock" if "stock" in self._servers else "ours"
        body = with_xargs(self._body(kind, item), {"ooospec": "off"} if kind == "ours" else {})
        server = self._servers[kind]
        answer = self._ask(server, body)
        answer.text = written_text(self._client, server.url, server.model, answer)
        self._raw.add({"item": item.id, "dataset": item.dataset, "method": "record", "answer": answer.to_json()})
        return answer

    def _warm(self, item: Item, kinds: Iterable[Kind], *, prepare: bool) -> None:
        """Have each server prefill the prompt, and ours prepare for the tools where hints are made there."""
        if prepare:  # as a client does that binds the tools
            url = f"{self._servers['ours'].url}/v1/ooospec/prepare"
            self._client.post(url, json={"tools": item.tools}).raise_for_status()
        for kind in kinds:
            body = self._body(kind, item) | {"max_tokens": 1, "stream": False}
            body.pop("stream_options", None)
            self._ask(self._servers[kind], with_xargs(body, {"ooospec": "off"} if kind == "ours" else {}))

    def _fill(self, method: BenchMethod, before: Sequence[Item], progress: Progress) -> None:
        """Fill a method's store with the warm list, and with what a stopped run had asked of it."""
        store = self._store(method)
        if store in self._filled or not method.remembers:
            return
        self._filled.add(store)
        fill = [*(self._plan.warm or ()), *(item for item in before if self._done(method, item))]
        for number, item in enumerate(fill, start=1):
            # An id of its own says that a hint will be posted: no wave starts, and none is.
            xargs = {"ooospec": method.drafting, "ooospec_scope": store, "ooospec_id": uuid.uuid4().hex}
            body = with_xargs(self._body(method.server, item), xargs if method.server == "ours" else {})
            self._ledger.fill(store, item, self._ask(self._servers[method.server], body))
            progress(f"filling the store of {method.name}: {number} of {len(fill)}")

    def _store(self, method: BenchMethod) -> str:
        """The store that a timed request draws from: a scope of ours, or what its server has seen."""
        if self._plan.warm is not None or method.server != "ours":
            own = "" if self._plan.warm is not None else uuid.uuid4().hex  # cold, others remember nothing
            return f"{self._run_id}-{method.name}{own}"
        return uuid.uuid4().hex

    def _ask_timed(self, method: BenchMethod, item: Item, plain: Answer | None) -> Answer:
        store = self._store(method)
        xargs = method.xargs(item, plain, store, self._plan.seed)
        beside = self._plan.beside(method)
        replayed = method.hint == "sidecar" and not beside
        wave = self._helpers.waves.get((item.dataset, item.id)) if replayed else None
        if replayed or method.hint == "none":
            xargs["ooospec_id"] = uuid.uuid4().hex
        body = with_xargs(self._body(method.server, item), xargs)
        if not self._plan.cached:
            body["cache_salt"] = f"{method.name}/{item.id}"
        server = self._servers[method.server]
        if beside and self._helpers.probe is not None:
            self._helpers.probe.warm(item)
            self._rest.after()
        self._rest.before()
        used, helped = server.cpu_s(), self._helpers.sidecar.cpu_s() if self._helpers.sidecar else 0.0
        posted = posted_after(self._client, server.url, xargs["ooospec_id"], wave) if wave else nullcontext()
        with posted:
            answer = self._ask(server, body)
        row = {
            "item": item.id,
            "dataset": item.dataset,
            "method": method.name,
            "scope": xargs.get("ooospec_scope", ""),
            "cpu_s": server.cpu_s() - used,
            "answer": answer.to_json(),
        }
        if beside and self._helpers.sidecar is not None:
            row["sidecar_cpu_s"] = self._helpers.sidecar.cpu_s() - helped
        row |= _hint_fields(xargs, wave, answer)
        self._ledger.check(method, item, xargs, answer, store)
        self._raw.add(row)
        return answer

    def _ask(self, server: Server, body: dict[str, Any]) -> Answer:
        answer = ask(self._client, server.url, body)
        self._rest.after()
        return answer

    def _body(self, kind: Kind, item: Item) -> dict[str, Any]:
        return chat_body(
            self._servers[kind].model,
            item,
            tool_choice=self._plan.tool_choice,
            max_tokens=self._plan.max_tokens,
            stream=self._plan.stream,
        )


def _hint_fields(xargs: Mapping[str, Any], wave: RecordedWave | None, answer: Answer) -> dict[str, Any]:
    """What the request's hint said, its size and how long its wave took, as far as it is known here."""
    reported = (answer.report or {}).get("hint") or {}
    said = reported.get("said")
    if xargs.get("ooospec_hint") or (wave is not None and wave.hint):
        said = json.loads(xargs.get("ooospec_hint") or (wave.hint if wave else ""))
    fields: dict[str, Any] = {}
    if said:
        size = len(json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode())
        fields |= {"hint": said, "hint_bytes": size}
    wave_ms = wave.delay_s * 1e3 if wave is not None else reported.get("wave_ms")
    return fields | ({"wave_ms": wave_ms} if wave_ms is not None else {})
