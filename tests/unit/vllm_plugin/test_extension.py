from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("zmq")

from ooospec_agents.vllm_plugin import proposer as proposer_module
from ooospec_agents.vllm_plugin.extension import Extension
from ooospec_agents.vllm_plugin.proposer import Proposer
from ooospec_agents.vllm_plugin.repairs import Repair


class Worker(Extension):
    """vLLM's worker class with our extension mixed in."""

    def __init__(self, drafter: Any) -> None:
        self.rank = 0
        self.model_runner = SimpleNamespace(drafter=drafter)


def proposer(monkeypatch: pytest.MonkeyPatch, **parts: Any) -> Proposer:
    found = [Repair("sampling parameters", "repaired"), Repair("length limit", "absent")]
    monkeypatch.setattr(proposer_module, "repair_all", lambda runner: found)
    monkeypatch.setattr(proposer_module, "obstacle", lambda parallel: "")
    monkeypatch.setattr(proposer_module, "real_drafters", lambda config, _budget: None)
    monkeypatch.delenv("OOOSPEC_SOCKET_DIR", raising=False)
    for name, value in parts.items():
        monkeypatch.setattr(proposer_module, name, value)
    sizes = {"world_size": 1, "tensor_parallel_size": 1, "pipeline_parallel_size": 1}
    return Proposer(
        SimpleNamespace(
            speculative_config=SimpleNamespace(num_speculative_tokens=8),
            model_config=SimpleNamespace(get_vocab_size=lambda: 100),
            parallel_config=SimpleNamespace(**sizes, data_parallel_rank=0, data_parallel_index=3),
        )
    )


def test_extension_adds_one_name_to_the_worker() -> None:
    assert [name for name in dir(Extension) if not name.startswith("__")] == ["ooospec_bind"]


def test_bound_worker_says_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = SimpleNamespace(fault="", dropped=0)
    monkeypatch.setattr(proposer_module, "Foresight", lambda inbox, make, on_fault: None)
    addresses = []
    ours = proposer(
        monkeypatch,
        worker_address=lambda rank: addresses.append(rank) or f"ipc:///x/worker-{rank}",
        WorkerInbox=lambda address: inbox,
    )
    status = Worker(ours).ooospec_bind()
    assert (status["drafting"], status["reason"]) == (True, "")
    assert status["repairs"] == ["sampling parameters: repaired", "length limit: absent"]
    assert addresses == [3]


def test_binding_again_only_says_how_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = proposer(monkeypatch)
    worker = Worker(ours)
    first = worker.ooospec_bind()
    monkeypatch.setattr(ours, "bind", None)
    assert worker.ooospec_bind() == first


def test_missing_folder_of_sockets_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    status = Worker(proposer(monkeypatch)).ooospec_bind()
    assert status["drafting"] is False
    assert "OOOSPEC_SOCKET_DIR is not set" in status["reason"]


def test_missing_tokenizer_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(config: Any, _budget: object) -> None:
        msg = "no tokenizer"
        raise RuntimeError(msg)

    status = Worker(proposer(monkeypatch, real_drafters=fails)).ooospec_bind()
    assert (status["drafting"], status["reason"]) == (False, "RuntimeError: no tokenizer")


def test_drafter_of_others_is_left_alone() -> None:
    status = Worker(object()).ooospec_bind()
    assert (status["drafting"], status["reason"]) == (
        False,
        "the drafter of 'SimpleNamespace' is 'object', not ours",
    )


def test_binding_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = proposer(monkeypatch)
    monkeypatch.setattr(ours, "bind", None)
    status = Worker(ours).ooospec_bind()
    assert status["drafting"] is False
    assert status["reason"].startswith("TypeError")
