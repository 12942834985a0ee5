"""The drafter as vLLM's V1 engine sees it: `--speculative-config '{"method": "custom_class", "model": ...}'`.

This file is all that knows how V1 asks for drafts: rows without request ids, once a step, after the sampled
ids were written to the batch. vLLM 0.32 and 0.33 are the same here (`seams.py` says what is relied upon).
"""

from __future__ import annotations

import logging
import time
from typing import Any

from ooospec_agents.drafting.budget import Budget
from ooospec_agents.drafting.flow import Flow
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.privacy import told, trace
from ooospec_agents.vllm_plugin.ceiling import Ceiling, replay_allowed, replay_ids
from ooospec_agents.vllm_plugin.channel import WorkerInbox, WorkerOutbox, worker_address
from ooospec_agents.vllm_plugin.compat import obstacle
from ooospec_agents.vllm_plugin.drafters import Drafters, MakeDrafter, real_drafters
from ooospec_agents.vllm_plugin.foresight import Foresight
from ooospec_agents.vllm_plugin.messages import LOGGER, GuessesMessage, HintMessage
from ooospec_agents.vllm_plugin.repairs import Repair, repair_all
from ooospec_agents.vllm_plugin.row import Drafts, Row, stop_ids
from ooospec_agents.vllm_plugin.tally import Tally
from ooospec_agents.vllm_plugin.waiting import WaitingRoom

ID_ARGUMENT = "ooospec_id"
"""Name in a request's `vllm_xargs` of the id under which it was announced."""
SEEDED_ARGUMENT = "ooospec_seeded"
"""Name in a request's `vllm_xargs` that asks for drafts although the request has a seed."""
MAX_STEP_TOKENS = 1024
"""Most tokens drafted in one step for all rows: logits of each are kept in float32, and vLLM does not plan
for them."""

logger = logging.getLogger(LOGGER)


class Proposer:
    """Drafts for every row of a batch. What goes wrong with one row costs that row its drafts only."""

    def __init__(self, vllm_config: Any) -> None:
        """Called by vLLM in each worker. Drafts nothing until `bind`."""
        self.bound = False
        self._config = vllm_config
        self._width = int(vllm_config.speculative_config.num_speculative_tokens)
        self._reason = "not bound to the model runner yet"
        self._read = True
        self._rank = 0
        self._runner: Any = None
        self._inbox: WorkerInbox | None = None
        self._outbox = WorkerOutbox()
        self._make: MakeDrafter | None = None
        self._foresight: Foresight | None = None
        self._repairs: list[Repair] = []
        self._vocab_size = 0
        self._rows: dict[str, Row | None] = {}
        self._waiting = WaitingRoom(time.monotonic)
        self._fault_counts: dict[str, int] = {}
        self._budget = Budget()
        self._flow = Flow()
        self._tally = Tally()
        self._last_step: tuple[list[str], int, float] = ([], 0, 0.0)

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        """There is no draft model; vLLM's CPU runner calls this all the same."""

    def bind(self, runner: Any, *, rank: int = 0) -> None:
        """Tie the proposer to its V1 model runner: repairs, tokenizer, local socket."""
        self.bound = True
        self._runner = runner
        self._rank = rank
        self._vocab_size = int(self._config.model_config.get_vocab_size())
        self._repairs = repair_all(runner)
        parallel = self._config.parallel_config
        self._read = rank == output_rank(parallel)
        self._reason = self._obstacle()
        if self._reason:
            return
        try:
            self._make = drafters = real_drafters(self._config.model_config, self._budget)
            self._inbox = WorkerInbox(worker_address(dp_rank(parallel)))
            self._reason = self._inbox.fault
        except Exception as error:
            self._reason = f"{type(error).__name__}: {error}"
        if self._reason or self._inbox is None:
            return
        try:
            self._foresight = Foresight(self._inbox, drafters.ahead, self._fault)
        except Exception as error:  # every row thinks for itself then
            self._fault("foresight", error)

    def status(self) -> dict[str, Any]:
        """How it stands, as JSON-able data."""
        return {
            "drafting": self.bound and not self._reason,
            "reason": self._reason,
            "read": self._read,
            "rank": self._rank,
            "dp_rank": dp_rank(self._config.parallel_config),
            "num_speculative_tokens": self._width,
            "vocab_size": self._vocab_size,
            "repairs": [
                f"{repair.fault}: {repair.state}" + (f" ({repair.detail})" if repair.detail else "")
                for repair in self._repairs
            ],
            "replay": replay_allowed(),
            "requests": len(self._rows),
            "faults": sum(self._fault_counts.values()),
            "messages_dropped": self._inbox.dropped if self._inbox is not None else 0,
            "reports_dropped": self._outbox.dropped,
        }

    def propose(
        self,
        sampled_token_ids: list[list[int]],
        num_tokens_no_spec: Any = None,
        token_ids_cpu: Any = None,
        slot_mappings: Any = None,
    ) -> list[list[int]]:
        """Drafts of the rows whose newly sampled ids are given (`[]`: still prefilling). Never raises."""
        if self._reason:
            return [[] for _ in sampled_token_ids]
        try:
            return self._propose(sampled_token_ids)
        except Exception as error:
            self._fault("step", error)
            return [[] for _ in sampled_token_ids]

    def _propose(self, sampled_token_ids: list[list[int]]) -> list[list[int]]:
        requests = self._runner.requests
        req_ids = list(self._runner.input_batch.req_ids)
        self._observe(req_ids, sampled_token_ids)
        # First, so that a request which takes up the id of an ended one is not swept away with it.
        self._sweep(requests)
        hints = self._read_messages()
        rows = max(len(sampled_token_ids), 1)
        self._flow.step(req_ids)
        begun = [self._rows[req_id] for req_id in req_ids if req_id in self._rows]
        outlasted = any(row is None or (row.idle and not row.ended) for row in begun)
        self._budget.serve(rows, self._flow.share, outlasted=outlasted)
        width = min(self._width, max(MAX_STEP_TOKENS // rows, 1))
        drafts = []
        for req_id, new in zip(req_ids, sampled_token_ids, strict=True):
            draft: list[int] = []
            if new:
                try:
                    draft = self._step(req_id, requests[req_id], new, width, hints)
                except Exception as error:
                    self._rows[req_id] = None
                    self._fault("row", error)
            drafts.append(draft)
        self._last_step = (req_ids, sum(map(len, drafts)) + len(drafts), time.perf_counter())
        return drafts

    def _observe(self, req_ids: list[str], sampled_token_ids: list[list[int]]) -> None:
        """Tell the budget what the step that ends here cost: the same rows as before it, none of them prefilling."""
        rows, tokens, since = self._last_step
        if rows == req_ids and all(sampled_token_ids):
            self._budget.observe(tokens, time.perf_counter() - since)

    def _read_messages(self) -> dict[str, HintMessage]:
        """Take in what has come; the hints among it, by the id of their request."""
        hints: dict[str, HintMessage] = {}
        source = self._inbox if self._foresight is None else self._foresight
        for message in source.mail() if source is not None else ():
            if isinstance(message, HintMessage):
                self._waiting.hint(message)
                hints[message.id] = message
            elif isinstance(message, GuessesMessage):
                self._waiting.guesses(message)
            else:
                self._waiting.open(message)
                if message.spec.reply_to:
                    self._outbox.prepare(message.spec.reply_to)
        self._waiting.expire()
        return hints

    def _step(self, req_id: str, state: Any, new: list[int], width: int, hints: dict[str, HintMessage]) -> list[int]:
        started = time.perf_counter()
        began = req_id not in self._rows
        row = self._begin(req_id, state) if began else self._rows[req_id]
        if row is None or row.ended:
            return []
        output = state.output_token_ids
        if row.committed + len(new) != len(output):
            # Not the row's next ids (a failed cache load took some back, or a session went on): read all
            # again.
            began = True
            row = self._begin(req_id, state)
            if row is None:
                return []
        if began:
            new = list(output)
            waiting = self._waiting.get(row.hint_id)
            message = waiting.hint if waiting is not None else None
        else:
            message = hints.get(row.hint_id)
        draft = row.step(
            new,
            message.hint if message is not None else None,
            width=width,
            max_model_len=self._runner.max_model_len,
            vocab_size=self._vocab_size,
            started=started,
        )
        if row.ended:
            row.finish()
        if row.reply_to and (row.ended or row.stop_strings):
            # Before the output leaves for the API process, which then has the report when the answer is
            # complete.
            self._report(row)
        return draft

    def _report(self, row: Row) -> None:
        """Send a row's report, and with it what this worker has to tell of itself; the client gets only the first."""
        totals = {f"fault {kind}": count for kind, count in list(self._fault_counts.items())}
        totals |= {"hint late": self._waiting.late, "hint unclaimed": self._waiting.unclaimed}
        totals |= {"lost report": self._outbox.dropped}
        if self._inbox is not None:
            totals["lost message"] = self._inbox.dropped
        sizes = {"rows": len(self._rows), **self._waiting.sizes()}
        if self._foresight is not None:
            sizes["ahead"] = len(self._foresight)
        if isinstance(self._make, Drafters):
            sizes["memories"] = len(self._make.stores)
        rank = dp_rank(self._config.parallel_config)
        news = {"rank": rank, "new": self._tally.news(totals), "sizes": sizes}
        if self._outbox.send(row.reply_to, {**row.report(), "worker": news}):
            self._tally.told(totals)

    def _begin(self, req_id: str, state: Any) -> Row | None:
        """The row of a request at its first sampled ids; None where it is none of ours."""
        self._rows[req_id] = None
        params = state.sampling_params
        extra = (params.extra_args or {}) if params is not None else {}
        request_id = str(extra.get(ID_ARGUMENT, ""))
        waiting = self._waiting.get(request_id) if request_id else None
        recorded = replay_ids(extra)
        ahead_s = 0.0
        if params is None or (waiting is None and recorded is None):
            return None
        spec = waiting.open.spec if waiting is not None else RequestSpec(id=request_id or req_id)
        if recorded is not None:
            drafter: Drafts = Ceiling(recorded, spec.id)
        elif spec.method in ("off", "ceiling") or self._make is None:
            drafter = Ceiling([], spec.id, spec.method)
        else:
            lora = state.lora_request.lora_name if state.lora_request is not None else ""
            thought = None
            if self._foresight is not None and waiting is not None:
                thought = self._foresight.take(waiting.open, lora, stop_ids(params))
            if thought is not None and thought.drafter is not None:
                drafter, ahead_s = thought.drafter, thought.seconds
            else:
                drafter = self._make(spec, lora, stop_ids(params))
        row = Row(
            state,
            drafter,
            hint_id=spec.id,
            reply_to=spec.reply_to,
            opened_at=waiting.open.sent_at if waiting is not None else time.monotonic(),
            # With drafts the same seed draws differently, and differently again when a hint is late.
            silent=_is_seeded(params) and not extra.get(SEEDED_ARGUMENT),
            ahead_s=ahead_s,
        )
        self._rows[req_id] = row
        return row

    def _sweep(self, requests: Any) -> None:
        """Forget requests that are over. vLLM does not say so: they are just no longer among the runner's."""
        gone = self._rows.keys() - requests.keys()
        if not gone:
            return
        over: set[str] = set()
        for req_id in gone:
            row = self._rows.pop(req_id)
            if row is None:
                continue
            over.add(row.hint_id)
            if row.stop_strings and not row.ended:
                try:
                    row.finish()
                except Exception as error:
                    self._fault("finish", error)
        for request_id in over - {row.hint_id for row in self._rows.values() if row is not None}:
            self._waiting.close(request_id)

    def _obstacle(self) -> str:
        """Why there can be no drafts, or ""."""
        if not self._read:
            return "this rank's drafts are not read by the engine"
        failed = [repair for repair in self._repairs if repair.blocks_drafting]
        if failed:
            return f"vLLM's fault {failed[0].fault!r} could not be repaired: {failed[0].detail}"
        return obstacle(self._config.parallel_config)

    def _fault(self, where: str, error: Exception) -> None:
        kind = f"{where} {type(error).__name__}"
        self._fault_counts[kind] = self._fault_counts.get(kind, 0) + 1
        if self._fault_counts[kind] == 1:
            logger.warning(
                "ooospec: swallowed a fault (%s): %s; further ones of this kind are only counted",
                kind,
                told(error),
                exc_info=trace(error),
            )


def output_rank(parallel_config: Any) -> int:
    """The rank whose drafts vLLM's executor reads: the first one of the last pipeline stage."""
    context = getattr(parallel_config, "prefill_context_parallel_size", 1)
    stage = parallel_config.tensor_parallel_size * context
    return int(parallel_config.world_size - stage)


def dp_rank(parallel_config: Any) -> int:
    """The data-parallel rank of this engine. vLLM sets `data_parallel_rank` back to 0 for dense models."""
    return int(getattr(parallel_config, "data_parallel_index", parallel_config.data_parallel_rank))


def _is_seeded(params: Any) -> bool:
    return params.seed is not None and params.temperature > 0.0
