"""What we rely on inside vLLM, checked on source text: the installed one's and a wheel's."""

import ast
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ooospec_agents.vllm_plugin.proposer import output_rank
from ooospec_agents.vllm_plugin.seams import (
    RUNNER,
    SEAMS,
    SERVE_SEAMS,
    Read,
    check_seams,
    folder_reader,
    wheel_reader,
)

EXECUTOR = "v1/executor/multiproc_executor.py"


def installed() -> Path:
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("vLLM is not installed")
    return Path(spec.submodule_search_locations[0])


def test_installed_vllm_has_all_seams() -> None:
    assert check_seams(folder_reader(installed()), (*SEAMS, *SERVE_SEAMS)) == []


def test_wheel_of_another_vllm_has_all_seams() -> None:
    wheel = os.environ.get("OOOSPEC_VLLM_WHEEL", "")
    if not wheel:
        pytest.skip("OOOSPEC_VLLM_WHEEL names no wheel; `pip download --no-deps vllm==0.33.0` (336 MB) gets one")
    read = wheel_reader(Path(wheel))
    assert check_seams(read, (*SEAMS, *SERVE_SEAMS)) == []
    assert their_output_rank(read)(executor(4, 2, 1)) == 4


def executor(tensor: int, stages: int, context: int) -> SimpleNamespace:
    """What vLLM's executor knows of the ranks."""
    size = tensor * stages * context
    config = SimpleNamespace(
        world_size=size,
        tensor_parallel_size=tensor,
        pipeline_parallel_size=stages,
        prefill_context_parallel_size=context,
    )
    return SimpleNamespace(world_size=size, parallel_config=config)


def their_output_rank(read: Read) -> Callable[[SimpleNamespace], int]:
    """vLLM's own answer to which rank's drafts are read, as a function of its executor."""
    tree = ast.parse(read("v1/executor/multiproc_executor.py"))
    (function,) = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_get_output_rank"
    ]
    names: dict[str, Callable[[SimpleNamespace], int]] = {}
    exec(compile(ast.Module([function], []), "multiproc_executor.py", "exec"), names)  # type: ignore[arg-type]
    return names["_get_output_rank"]


@pytest.mark.parametrize("tensor", [1, 2, 8])
@pytest.mark.parametrize("stages", [1, 4])
@pytest.mark.parametrize("context", [1, 2])
def test_the_rank_that_drafts_is_the_one_that_vllm_reads(tensor: int, stages: int, context: int) -> None:
    ranks = executor(tensor, stages, context)
    assert output_rank(ranks.parallel_config) == their_output_rank(folder_reader(installed()))(ranks)


def changed(read: Read, file: str, change: Callable[[str], str]) -> Read:
    def read_changed(name: str) -> str:
        text = read(name)
        if name != file:
            return text
        other = change(text)
        assert other != text
        return other

    return read_changed


@pytest.mark.parametrize(
    ("file", "old", "new", "missing"),
    [
        (RUNNER, "slot_mappings=slot_mappings,", "", "GPUModelRunner.propose_draft_token_ids"),
        (RUNNER, "def _input_fits_in_drafter", "def _input_fits", "GPUModelRunner._input_fits_in_drafter"),
        (RUNNER, "output_token_ids.extend(", "output_token_ids.append(", "GPUModelRunner._bookkeeping_sync"),
        ("sampling_params.py", "seed: int | None", "seed: str", "SamplingParams"),
        ("v1/sample/rejection_sampler.py", "replace_from: int = 0,", "", "expand_batch_to_tokens"),
        (EXECUTOR, "unique_reply_rank=self.output_rank,", "", "MultiprocExecutor.take_draft_token_ids"),
    ],
)
def test_a_change_is_noticed(file: str, old: str, new: str, missing: str) -> None:
    read = changed(folder_reader(installed()), file, lambda text: text.replace(old, new))
    found = check_seams(read, tuple(seam for seam in SEAMS if seam.file == file))
    assert [line.split(":")[0] for line in found] == [f"vllm/{file} {missing}"]
