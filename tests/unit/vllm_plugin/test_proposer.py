"""The proposer on a runner made of plain objects: which ids go in, which drafts come out, and what it survives."""

import logging
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin.messages import HintMessage, Open

pytest.importorskip("zmq")

from ooospec_agents.vllm_plugin import proposer as module
from ooospec_agents.vllm_plugin.proposer import Proposer
from ooospec_agents.vllm_plugin.repairs import Repair

EOS = 2
VOCABULARY = 100
HINT = Hint.of_call("weather", {"city": "Bonn"})


class ScriptedDrafter:
    """Drafts what the test says and writes down what it is told."""

    def __init__(self, spec: RequestSpec, lora: str, stops: Sequence[int]) -> None:
        self.spec = spec
        self.lora = lora
        self.stops = tuple(stops)
        self.drafts: list[Any] = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
        self.committed: list[list[int]] = []
        self.offered: list[Hint] = []
        self.finished = 0
        self.fails = self.idle = False

    def commit(self, token_ids: Sequence[int]) -> None:
        if self.fails:
            msg = "broken"
            raise RuntimeError(msg)
        self.committed.append(list(token_ids))

    def offer(self, hint: Hint, now: float) -> None:
        self.offered.append(hint)

    def draft(self, limit: int) -> Any:
        return SimpleNamespace(tokens=list(self.drafts))

    def finish(self) -> None:
        self.finished += 1

    def report(self) -> dict[str, Any]:
        hint = {"arrived": bool(self.offered), "at_token": None, "used": False, "after_ms": -1.0}
        return {"id": "wrong", "steps": len(self.committed), "hint": hint}


class Post:
    """Inbox and outbox without sockets."""

    def __init__(self) -> None:
        self.waiting: list[Open | HintMessage] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.dropped = 0

    def mail(self) -> list[Open | HintMessage]:
        messages, self.waiting = self.waiting, []
        return messages

    def prepare(self, address: str) -> None:
        pass

    def send(self, address: str, body: dict[str, Any]) -> bool:
        self.sent.append((address, body))
        return True


class Engine:
    """vLLM's runner as the proposer sees it, and the steps of its requests."""

    def __init__(self, width: int = 8, max_model_len: int = 1000) -> None:
        self.requests: dict[str, Any] = {}
        self.input_batch = SimpleNamespace(req_ids=[])
        self.max_model_len = max_model_len
        self.post = Post()
        self.drafters: list[ScriptedDrafter] = []
        self.proposer = Proposer(
            SimpleNamespace(
                speculative_config=SimpleNamespace(num_speculative_tokens=width),
                parallel_config=parallel(),
            )
        )
        self.proposer._runner = self
        self.proposer._vocab_size = VOCABULARY
        self.proposer._reason = ""
        self.proposer._inbox = self.post  # type: ignore[assignment]
        self.proposer._outbox = self.post  # type: ignore[assignment]
        self.proposer._make = self.make

    def make(self, spec: RequestSpec, lora: str, stops: Sequence[int]) -> ScriptedDrafter:
        self.drafters.append(ScriptedDrafter(spec, lora, stops))
        return self.drafters[-1]

    def add(self, req_id: str, announced: str = "", *, prompt: int = 5, **params: Any) -> None:
        extra = {"ooospec_id": announced} if announced else {}
        sampling: dict[str, Any] = {
            "extra_args": {**extra, **params.pop("extra", {})},
            "max_tokens": None,
            "stop": [],
            "stop_token_ids": [],
            "eos_token_id": EOS,
            "seed": None,
            "temperature": 0.0,
        }
        self.requests[req_id] = SimpleNamespace(
            num_prompt_tokens=prompt,
            output_token_ids=[],
            sampling_params=SimpleNamespace(**{**sampling, **params}),
            lora_request=None,
        )
        self.input_batch.req_ids.append(req_id)

    def remove(self, req_id: str) -> None:
        del self.requests[req_id]
        self.input_batch.req_ids.remove(req_id)

    def announce(self, request_id: str, **fields: Any) -> None:
        self.post.waiting.append(Open(RequestSpec(id=request_id, reply_to="ipc:///x/api", **fields)))

    def hint(self, request_id: str) -> None:
        self.post.waiting.append(HintMessage(request_id, HINT))

    def step(self, *sampled: list[int]) -> list[list[int]]:
        for req_id, new in zip(self.input_batch.req_ids, sampled, strict=True):
            self.requests[req_id].output_token_ids.extend(new)
        return self.proposer.propose(list(sampled), None, None)

    @property
    def drafter(self) -> ScriptedDrafter:
        return self.drafters[-1]


def parallel(**changes: int) -> SimpleNamespace:
    sizes = {
        "world_size": 1,
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "data_parallel_index": 0,
        "data_parallel_rank": 0,
    }
    return SimpleNamespace(**{**sizes, **changes})


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def running(engine: Engine) -> Engine:
    """One announced request after its first token."""
    engine.announce("r")
    engine.add("a", "r")
    engine.step([50])
    return engine


def test_unbound_proposer_drafts_nothing() -> None:
    config = SimpleNamespace(speculative_config=SimpleNamespace(num_speculative_tokens=8), parallel_config=parallel())
    assert Proposer(config).propose([[1], []]) == [[], []]


def test_request_that_was_not_announced_is_left_alone(engine: Engine) -> None:
    engine.add("a")
    assert engine.step([50]) == [[]]
    assert engine.drafters == []


def test_announced_request_is_drafted_at_most_k_tokens(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r")
    assert engine.step([50]) == [[10, 11, 12, 13, 14, 15, 16, 17]]
    assert engine.drafter.committed == [[50]]


def test_prefilling_row_waits(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r")
    assert engine.step([]) == [[]]
    assert engine.drafters == []


def test_rows_are_told_apart_by_id_when_they_move(running: Engine) -> None:
    running.announce("s")
    running.add("b", "s")
    running.step([51], [60])
    running.input_batch.req_ids.reverse()
    running.step([61], [52])
    first, second = running.drafters
    assert first.committed == [[50], [51], [52]]
    assert second.committed == [[60], [61]]


def test_row_absent_for_a_step_goes_on(running: Engine) -> None:
    running.input_batch.req_ids.remove("a")  # preempted: it leaves the batch, not the requests
    running.step()
    running.input_batch.req_ids.append("a")
    running.step([51])
    assert running.drafter.committed == [[50], [51]]


def test_output_that_was_taken_back_is_read_again(running: Engine) -> None:
    running.requests["a"].output_token_ids.clear()
    running.step([70])
    assert len(running.drafters) == 2
    assert running.drafter.committed == [[70]]


def test_hint_is_in_the_very_next_draft(running: Engine) -> None:
    running.hint("r")
    running.step([51])
    assert running.drafter.offered == [HINT]


def test_hint_with_the_request_is_offered_at_its_first_step(engine: Engine) -> None:
    engine.announce("r")
    engine.hint("r")
    engine.add("a", "r")
    engine.step([50])
    assert engine.drafter.offered == [HINT]


def test_hint_before_its_request_waits(engine: Engine) -> None:
    engine.hint("r")
    engine.announce("r")
    engine.add("a", "r")
    engine.step([50])
    assert engine.drafter.offered == [HINT]


def test_every_choice_of_one_request_gets_the_hint(engine: Engine) -> None:
    engine.announce("r")
    engine.add("0_a", "r")
    engine.add("1_a", "r")
    engine.step([50], [50])
    engine.hint("r")
    engine.step([51], [51])
    assert [drafter.offered for drafter in engine.drafters] == [[HINT], [HINT]]


def test_hint_of_a_finished_request_is_dropped(running: Engine) -> None:
    running.step([EOS])
    running.remove("a")
    running.step()
    running.hint("r")
    running.step()
    assert running.proposer._waiting._early == {}
    assert running.proposer._waiting.get("r") is None


def test_id_used_again_belongs_to_the_new_request(running: Engine) -> None:
    running.step([EOS])
    running.remove("a")
    running.announce("r", conversation="second")
    running.add("b", "r")
    running.step([50])
    assert running.drafter.spec.conversation == "second"


def test_lora_and_stop_ids_reach_the_drafter(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", stop_token_ids=[7])
    engine.requests["a"].lora_request = SimpleNamespace(lora_name="fine")
    engine.step([50])
    assert engine.drafter.lora == "fine"
    assert engine.drafter.stops == (EOS, 7)


def test_nothing_is_drafted_after_a_stop_id(running: Engine) -> None:
    running.drafter.drafts = [10, EOS, 11]
    assert running.step([51]) == [[10, EOS]]


def test_stop_token_ids_of_the_request_count(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", stop_token_ids=[12], eos_token_id=None)
    assert engine.step([50]) == [[10, 11, 12]]


def test_ignored_end_of_text_is_a_token_like_others(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", eos_token_id=None)
    engine.step([50])
    engine.drafter.drafts = [10, EOS, 11]
    assert engine.step([51]) == [[10, EOS, 11]]


def test_draft_leaves_room_for_max_tokens(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", max_tokens=5)
    # 2 of 5 written: 2 drafts and the token sampled after them fill the rest.
    assert engine.step([50, 51]) == [[10, 11]]


def test_draft_leaves_room_for_max_model_len() -> None:
    engine = Engine(max_model_len=9)
    engine.announce("r")
    engine.add("a", "r", prompt=5)
    # 5 + 1 of 9 written: 2 drafts and the token sampled after them fill the rest.
    assert engine.step([50]) == [[10, 11]]


def test_last_token_before_the_limit_is_not_drafted(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", max_tokens=2)
    assert engine.step([50]) == [[]]


def test_rows_share_the_tokens_of_a_step(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STEP_TOKENS", 6)
    for name in "abc":
        engine.announce(name)
        engine.add(name, name)
    assert engine.step([50], [50], [50]) == [[10, 11], [10, 11], [10, 11]]


@pytest.mark.parametrize("why", ["idle", "unannounced"])
def test_the_budget_hears_of_a_request_that_cannot_be_drafted(
    running: Engine, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    heard: list[tuple[int, bool]] = []
    serve = running.proposer._budget.serve

    def told(rows: int, followed: float, *, outlasted: bool) -> None:
        heard.append((rows, outlasted))
        serve(rows, followed, outlasted=outlasted)

    monkeypatch.setattr(running.proposer._budget, "serve", told)
    running.step([1])
    if why == "idle":
        running.drafter.idle = True
        running.step([2])
        assert heard == [(1, False), (1, True)]
    else:
        running.add("other")
        running.step([2], [1])  # what it is comes out in this step
        running.step([3], [2])
        assert heard == [(1, False), (2, False), (2, True)]


@pytest.mark.parametrize("token", [VOCABULARY, -1, 1.0, True, "10", None])
def test_draft_that_would_kill_the_engine_is_dropped(running: Engine, token: Any) -> None:
    running.drafter.drafts = [10, token]
    assert running.step([51]) == [[]]
    assert running.proposer.status()["faults"] == 1


def test_fault_of_one_row_leaves_the_others(running: Engine, caplog: pytest.LogCaptureFixture) -> None:
    running.announce("s")
    running.add("b", "s")
    running.step([51], [60])
    running.drafters[0].fails = True
    assert running.step([52], [61]) == [[], [10, 11, 12, 13, 14, 15, 16, 17]]
    assert running.step([53], [62]) == [[], [10, 11, 12, 13, 14, 15, 16, 17]]
    assert running.proposer.status()["faults"] == 1


def test_faults_of_one_kind_are_logged_once(running: Engine, caplog: pytest.LogCaptureFixture) -> None:
    for name in "bc":
        running.announce(name)
        running.add(name, name)
    running.step([51], [60], [70])
    for drafter in running.drafters:
        drafter.fails = True
    with caplog.at_level("WARNING"):
        running.step([52], [61], [71])
    assert running.proposer.status()["faults"] == 3
    assert len([record for record in caplog.records if "swallowed" in record.getMessage()]) == 1


def test_runner_that_changed_costs_drafts_only(running: Engine) -> None:
    running.input_batch = SimpleNamespace()
    assert running.proposer.propose([[51]]) == [[]]
    assert running.proposer.status()["faults"] == 1


def test_seeded_request_is_read_and_not_drafted(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", seed=1, temperature=0.7)
    assert engine.step([50]) == [[]]
    assert engine.drafter.committed == [[50]]


def test_seeded_request_is_drafted_when_asked(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", seed=1, temperature=0.7, extra={"ooospec_seeded": 1})
    assert engine.step([50])[0][:2] == [10, 11]


def test_seed_of_a_greedy_request_does_not_matter(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", seed=1)
    assert engine.step([50])[0][:2] == [10, 11]


def test_report_leaves_with_the_last_token(running: Engine) -> None:
    assert running.post.sent == []
    assert running.step([51, EOS, 99]) == [[]]  # 99 was accepted behind the end: vLLM cuts it off
    assert running.drafter.committed == [[50], [51, EOS]]
    assert running.drafter.finished == 1
    ((address, report),) = running.post.sent
    assert (address, report["id"], report["steps"]) == ("ipc:///x/api", "r", 2)
    assert report["draft_ms_total"] >= report["draft_ms_max"] > 0


def test_report_leaves_at_max_tokens(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", max_tokens=2)
    engine.step([50])
    assert engine.post.sent == []
    engine.step([51, 52])
    assert engine.drafter.committed == [[50], [51]]
    assert len(engine.post.sent) == 1


def test_report_leaves_at_max_model_len() -> None:
    engine = Engine(max_model_len=7)
    engine.announce("r")
    engine.add("a", "r", prompt=5)
    engine.step([50])
    engine.step([51])
    assert len(engine.post.sent) == 1


def test_report_leaves_at_each_step_that_may_be_the_last(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", stop=["}"])
    engine.step([50])
    engine.step([51])
    assert [report["steps"] for _, report in engine.post.sent] == [1, 2]


def test_ended_row_waits_for_its_removal(running: Engine) -> None:
    running.step([EOS])
    assert running.step([60]) == [[]]
    assert running.drafter.committed == [[50], [EOS]]
    assert len(running.post.sent) == 1


def test_cancelled_request_teaches_nothing(running: Engine) -> None:
    running.remove("a")
    running.step()
    assert running.drafter.finished == 0
    assert running.proposer.status()["requests"] == 0


def test_request_ended_by_a_stop_string_is_learned_from(engine: Engine) -> None:
    engine.announce("r")
    engine.add("a", "r", stop=["}"])
    engine.step([50])
    engine.remove("a")
    engine.step()
    assert engine.drafter.finished == 1


def test_time_of_the_hint_counts_from_the_announcement(running: Engine) -> None:
    running.hint("r")
    running.step([51])
    running.step([EOS])
    after = running.post.sent[0][1]["hint"]["after_ms"]
    assert 0.0 <= after < time.monotonic() * 1000.0


def test_off_is_reported_and_not_drafted(engine: Engine) -> None:
    engine.announce("r", method="off")
    engine.add("a", "r")
    assert engine.step([50]) == [[]]
    assert engine.step([51]) == [[]]
    engine.step([EOS])
    report = engine.post.sent[0][1]
    assert engine.drafters == []
    assert (report["method"], report["steps"], report["tokens"], report["drafted"]) == ("off", 3, 3, {})
    assert report["token_sources"] == ["target"] * 3


def test_recorded_ids_are_played_back(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOOSPEC_ALLOW_REPLAY", "1")
    engine.announce("r", method="ceiling")
    engine.add("a", "r", extra={"ooospec_replay": [50, 51, 52, 53, EOS]})
    assert engine.step([50]) == [[51, 52, 53, EOS]]
    engine.step([51, 52, 53, EOS])
    report = engine.post.sent[0][1]
    assert report["accepted"] == {"replay": 3}
    assert report["token_sources"] == ["target", "replay", "replay", "replay", "target"]


def test_recorded_ids_are_not_played_back_unless_allowed(engine: Engine) -> None:
    engine.announce("r", method="ceiling")
    engine.add("a", "r", extra={"ooospec_replay": [50, 51, 52]})
    assert engine.step([50]) == [[]]


@pytest.mark.parametrize(("rank", "reads"), [(0, True), (1, False)])
def test_only_the_rank_that_is_read_drafts(monkeypatch: pytest.MonkeyPatch, rank: int, reads: bool) -> None:
    config = SimpleNamespace(
        speculative_config=SimpleNamespace(num_speculative_tokens=8),
        model_config=SimpleNamespace(get_vocab_size=lambda: VOCABULARY),
        parallel_config=parallel(world_size=2, tensor_parallel_size=2),
    )
    monkeypatch.setattr(module, "repair_all", lambda runner: [])
    proposer = Proposer(config)
    proposer.bind(SimpleNamespace(), rank=rank)
    assert proposer.status()["read"] is reads
    assert (proposer.status()["reason"] == "this rank's drafts are not read by the engine") is not reads
    assert proposer.propose([[1]]) == [[]]


def test_output_rank_is_the_first_of_the_last_stage() -> None:
    assert module.output_rank(parallel(world_size=32, tensor_parallel_size=8)) == 24
    assert module.output_rank(parallel()) == 0


def test_failed_repair_turns_drafting_off(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(
        speculative_config=SimpleNamespace(num_speculative_tokens=8),
        model_config=SimpleNamespace(get_vocab_size=lambda: VOCABULARY),
        parallel_config=parallel(),
    )
    monkeypatch.setattr(module, "repair_all", lambda runner: [Repair("sampling parameters", "failed", "no")])
    proposer = Proposer(config)
    proposer.bind(SimpleNamespace())
    assert "'sampling parameters' could not be repaired: no" in proposer.status()["reason"]
    assert proposer.status()["drafting"] is False


@pytest.mark.parametrize("debug", ["0", "1"])
def test_a_logged_fault_quotes_no_request_unless_asked_to(
    engine: Engine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, debug: str
) -> None:
    monkeypatch.setenv("OOOSPEC_DEBUG", debug)
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    with caplog.at_level(logging.WARNING, "vllm.ooospec"):
        engine.proposer._fault("row", ValueError("card 1234"))
    assert caplog.records
    assert ("card 1234" in caplog.text) == (debug == "1")
