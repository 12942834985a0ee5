"""What we rely on inside vLLM, checked on source text: the installed one's and a wheel's."""

import ast
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import ooospec_agents
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

APP = "entrypoints/launchers/app.py"


def installed() -> Path:
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("vLLM is not installed")
    return Path(spec.submodule_search_locations[0])


def test_installed_vllm_has_all_seams() -> None:
    assert check_seams(folder_reader(installed()), (*SEAMS, *SERVE_SEAMS)) == []


def other() -> Path:
    """The wheel of another vLLM. `make test` fetches it and names it."""
    wheel = os.environ.get("OOOSPEC_VLLM_WHEEL", "")
    if not wheel:
        pytest.skip("OOOSPEC_VLLM_WHEEL names no wheel; `make test` and `make wheel-test` fetch one (336 MB)")
    return Path(wheel)


def test_wheel_of_another_vllm_has_all_seams() -> None:
    read = wheel_reader(other())
    assert check_seams(read, (*SEAMS, *SERVE_SEAMS)) == []
    assert their_output_rank(read)(executor(4, 2, 1)) == 4


def our_imports() -> list[tuple[str, str]]:
    """Every module of vLLM, and every name out of it, that our package imports."""
    found = set()
    for file in Path(ooospec_agents.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "vllm":
                found |= {(str(node.module), alias.name) for alias in node.names}
    return sorted(found)


def lacking(read: Read, imports: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Which of the imports would fail."""
    return [(module, name) for module, name in imports if name not in names_of(read, module)]


def names_of(read: Read, module: str) -> set[str]:
    """What a module defines or imports at its top level."""
    path = module.removeprefix("vllm.").replace(".", "/")
    for file in (f"{path}.py", f"{path}/__init__.py"):
        try:
            body = ast.parse(read(file)).body
        except (OSError, KeyError):
            continue
        defined = {getattr(node, "name", "") for node in body}
        imported = {a.asname or a.name for node in body if isinstance(node, ast.ImportFrom) for a in node.names}
        return defined | imported
    return set()


def test_all_that_we_import_of_vllm_is_there() -> None:
    assert len(our_imports()) > 8
    assert lacking(folder_reader(installed()), our_imports()) == []


def test_all_that_we_import_is_in_another_vllm_too() -> None:
    assert lacking(wheel_reader(other()), our_imports()) == []


def test_an_import_that_fails_is_noticed() -> None:
    gone = [("vllm.gone", "x"), ("vllm.sampling_params", "gone"), ("vllm.sampling_params", "SamplingParams")]
    assert lacking(folder_reader(installed()), gone) == gone[:2]


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
        (APP, "    attach_endpoint_plugins(app, supported_tasks)\n", "", "build_app"),
        (
            APP,
            "    init_exception_handler(app)\n    init_entrypoints_middleware(args, app, supported_tasks)\n",
            "",
            "build_app",
        ),
        (EXECUTOR, "unique_reply_rank=self.output_rank,", "", "MultiprocExecutor.take_draft_token_ids"),
    ],
)
def test_a_change_is_noticed(file: str, old: str, new: str, missing: str) -> None:
    read = changed(folder_reader(installed()), file, lambda text: text.replace(old, new))
    found = check_seams(read, tuple(seam for seam in SEAMS if seam.file == file))
    assert [line.split(":")[0] for line in found] == [f"vllm/{file} {missing}"]
