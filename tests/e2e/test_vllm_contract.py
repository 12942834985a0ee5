"""What we rely on inside vLLM, checked on source text: the installed one's and a wheel's."""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ooospec_agents.vllm_plugin.seams import RUNNER, SEAMS, Read, check_seams, folder_reader, wheel_reader


def installed() -> Path:
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("vLLM is not installed")
    return Path(spec.submodule_search_locations[0])


def test_installed_vllm_has_all_seams() -> None:
    assert check_seams(folder_reader(installed())) == []


def test_wheel_of_another_vllm_has_all_seams() -> None:
    wheel = os.environ.get("OOOSPEC_VLLM_WHEEL", "")
    if not wheel:
        pytest.skip("OOOSPEC_VLLM_WHEEL names no wheel; `pip download --no-deps vllm==0.33.0` (336 MB) gets one")
    assert check_seams(wheel_reader(Path(wheel))) == []


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
    ],
)
def test_a_change_is_noticed(file: str, old: str, new: str, missing: str) -> None:
    read = changed(folder_reader(installed()), file, lambda text: text.replace(old, new))
    found = check_seams(read, tuple(seam for seam in SEAMS if seam.file == file))
    assert [line.split(":")[0] for line in found] == [f"vllm/{file} {missing}"]
