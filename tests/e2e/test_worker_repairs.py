"""vLLM's two faults on the CPU, on its own functions: each is there, hurts, and is repaired.

Where a newer vLLM no longer has a fault, its tests are skipped: the repair is then not made.
"""

import importlib.util
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ooospec_agents.vllm_plugin import repairs

# torch and vLLM warn of each other's parts; what is registered with vLLM makes it touch all of them.
pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore")]

VOCABULARY = 32
DRAFT = [3, 5, 7, 11, 13, 17]
BONUS = 19
"""What the greedy row's target says after its draft."""


@pytest.fixture(scope="module")
def vllm() -> SimpleNamespace:
    """The parts of vLLM that are tried. Importing it takes long: not done while collecting."""
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from vllm.platforms import current_platform
        from vllm.triton_utils import dispatcher
        from vllm.v1.sample import rejection_sampler
        from vllm.v1.sample.logits_processor import LogitsProcessors
        from vllm.v1.sample.metadata import SamplingMetadata
        from vllm.v1.sample.sampler import Sampler
        from vllm.v1.spec_decode.metadata import SpecDecodeMetadata
        from vllm.v1.worker.gpu_model_runner import GPUModelRunner
    if not current_platform.is_cpu():
        pytest.skip("these faults are on the CPU")
    return SimpleNamespace(
        torch=torch,
        current_platform=current_platform,
        dispatcher=dispatcher,
        rejection_sampler=rejection_sampler,
        LogitsProcessors=LogitsProcessors,
        SamplingMetadata=SamplingMetadata,
        Sampler=Sampler,
        SpecDecodeMetadata=SpecDecodeMetadata,
        GPUModelRunner=GPUModelRunner,
    )


@pytest.fixture
def faulty(vllm: SimpleNamespace) -> Iterator[SimpleNamespace]:
    """vLLM with its own kernels, as a worker has them before any repair."""
    vllm.current_platform.register_triton_kernel_overrides()
    if repairs.sampling_is_right():
        pytest.skip("this vLLM reads sampling parameters correctly")
    yield vllm
    vllm.current_platform.register_triton_kernel_overrides()


def verify_mixed_batch(vllm: SimpleNamespace) -> list[list[int]]:
    """One step: a greedy row whose target agrees with `DRAFT`, and a sampled row with two wrong drafts."""
    torch = vllm.torch
    target = torch.full((len(DRAFT) + 1 + 3, VOCABULARY), 1.0)
    for position, token in enumerate([*DRAFT, BONUS]):
        target[position, token] = 4.0
    metadata = vllm.SpecDecodeMetadata.make_dummy([DRAFT, [1, 2]], device=torch.device("cpu"))
    metadata.target_logits_indices = torch.tensor([0, 1, 2, 3, 4, 5, 7, 8], dtype=torch.int32)
    metadata.bonus_logits_indices = torch.tensor([6, 9], dtype=torch.int32)
    sampling = vllm.SamplingMetadata(
        temperature=torch.tensor([0.0, 0.8]),
        all_greedy=False,
        all_random=False,
        top_p=None,
        top_k=None,
        generators={},
        max_num_logprobs=None,
        no_penalties=True,
        prompt_token_ids=None,
        frequency_penalties=torch.tensor([]),
        presence_penalties=torch.tensor([]),
        repetition_penalties=torch.tensor([]),
        output_token_ids=[[], []],
        allowed_token_ids_mask=None,
        bad_words_token_ids={},
        logitsprocs=vllm.LogitsProcessors(),
        spec_token_ids=[[], []],
    )
    output = vllm.rejection_sampler.RejectionSampler(vllm.Sampler())(metadata, None, target, sampling)
    rows, _ = vllm.rejection_sampler.RejectionSampler.parse_output(output.sampled_token_ids, VOCABULARY)
    return [[int(token) for token in row] for row in rows]


def test_sampling_fault_is_repaired(faulty: SimpleNamespace) -> None:
    assert not repairs.sampling_is_right()
    assert repairs.repair_sampling("cpu") == repairs.Repair("sampling parameters", "repaired")
    assert repairs.sampling_is_right()


def test_sampling_repair_is_made_once(faulty: SimpleNamespace) -> None:
    repairs.repair_sampling("cpu")
    assert repairs.repair_sampling("cpu") == repairs.Repair("sampling parameters", "absent")


def test_sampling_fault_can_be_left_in(faulty: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOOSPEC_NO_REPAIR", "1")
    assert repairs.repair_sampling("cpu") == repairs.Repair("sampling parameters", "left in")
    assert not repairs.sampling_is_right()


def test_sampling_repair_that_does_nothing_blocks_drafting(
    faulty: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faulty.dispatcher, "register_kernels", lambda overrides: None)
    repair = repairs.repair_sampling("cpu")
    assert repair.state == "failed"
    assert repair.blocks_drafting


def test_spread_of_many_rows(faulty: SimpleNamespace) -> None:
    repairs.repair_sampling("cpu")
    torch = faulty.torch
    ends = torch.tensor([0, 3, 3, 4], dtype=torch.int32)
    given = torch.tensor([9, 8, 7, 0], dtype=torch.int32)
    spread = faulty.rejection_sampler.expand_batch_to_tokens(given, ends, 4, replace_from=0, replace_to=5)
    assert spread.tolist() == [8, 8, 8, 5]


def test_greedy_row_beside_a_sampled_one_is_verified_rightly(faulty: SimpleNamespace) -> None:
    repairs.repair_sampling("cpu")
    assert [verify_mixed_batch(faulty)[0] for _ in range(20)] == [[*DRAFT, BONUS]] * 20


def test_greedy_row_beside_a_sampled_one_is_wrong_with_the_fault(
    faulty: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The positive control of the test above: fault left in, the greedy row goes wrong."""
    monkeypatch.setenv("OOOSPEC_NO_REPAIR", "1")
    repairs.repair_sampling("cpu")
    assert any(verify_mixed_batch(faulty)[0] != [*DRAFT, BONUS] for _ in range(20))


def length_check(vllm: SimpleNamespace, max_model_len: int = 4096, width: int = 40) -> Any:
    """What vLLM's length check looks at, with vLLM's own check."""
    runner = vllm.GPUModelRunner
    stand_in = SimpleNamespace(
        max_model_len=max_model_len,
        num_spec_tokens=width,
        effective_drafter_max_model_len=max_model_len,
        speculative_config=SimpleNamespace(use_dflash=lambda: False),
        use_async_scheduling=False,
        prev_num_spec_tokens=width,
        input_batch=SimpleNamespace(req_ids=["a"]),
        draft_token_ids_event=object(),
        draft_token_ids_copy_stream=object(),
        draft_token_ids_cpu=vllm.torch.zeros(1, width),
        _draft_token_ids=vllm.torch.zeros(1, width, dtype=vllm.torch.int32),
    )
    stand_in._input_fits_in_drafter = runner._input_fits_in_drafter.__get__(stand_in)
    stand_in._copy_draft_token_ids_to_cpu = runner._copy_draft_token_ids_to_cpu.__get__(stand_in)
    return stand_in


def fits(stand_in: Any, longest_row: int) -> bool:
    return bool(stand_in._input_fits_in_drafter(SimpleNamespace(max_seq_len=longest_row)))


def test_length_fault_is_repaired(vllm: SimpleNamespace) -> None:
    stand_in = length_check(vllm)
    assert not fits(stand_in, 4057)  # 4057 + 40 > 4096
    assert repairs.repair_length_limit(stand_in) == repairs.Repair("length limit", "repaired")
    assert fits(stand_in, 4096)


def test_length_repair_is_made_once(vllm: SimpleNamespace) -> None:
    stand_in = length_check(vllm)
    repairs.repair_length_limit(stand_in)
    assert repairs.repair_length_limit(stand_in) == repairs.Repair("length limit", "absent")


def test_length_fault_can_be_left_in_and_kills_the_step(vllm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: a row at the limit, and vLLM's next call raises, which ends the engine."""
    monkeypatch.setenv("OOOSPEC_NO_REPAIR", "1")
    stand_in = length_check(vllm)
    assert repairs.repair_length_limit(stand_in) == repairs.Repair("length limit", "left in")
    assert not fits(stand_in, 4057)
    with pytest.raises((AssertionError, RuntimeError), match="CUDA"):
        stand_in._copy_draft_token_ids_to_cpu(SimpleNamespace(has_structured_output_requests=False), True)


def test_runner_without_the_check_blocks_drafting() -> None:
    repair = repairs.repair_length_limit(SimpleNamespace(max_model_len=1))
    assert repair.state == "failed"
    assert repair.blocks_drafting
