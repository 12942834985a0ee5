"""What we rely on inside vLLM, as data, and a check of it against vLLM's source text. Nothing of vLLM is
imported.

The same check runs against the installed vLLM at start and against any unpacked wheel in tests, so that a
release that moves something is found before it is served with.
"""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Read = Callable[[str], str]
"""Gives the text of one source file by its path below `vllm/`; raises `OSError` or `KeyError` where there is
none."""


@dataclass(frozen=True)
class Seam:
    """One place of vLLM that we rely on.

    Attributes:
        file: Path below `vllm/`.
        name: Function, method (`Class.method`) or class; "": the whole file.
        parameters: Names that must be among its parameters, in this order.
        mentions: Code that must stand in it, in this order, spaces and line breaks aside.
        why: What breaks without it.
    """

    file: str
    name: str = ""
    parameters: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    why: str = ""


RUNNER = "v1/worker/gpu_model_runner.py"
SEAMS = (
    Seam(
        "v1/spec_decode/custom_class_proposer.py",
        "create_custom_proposer",
        ("vllm_config",),
        ("user_class(vllm_config)",),
        "our proposer is made",
    ),
    Seam(
        RUNNER,
        "GPUModelRunner.__init__",
        (),
        (
            "self.drafter",
            "create_custom_proposer(",
            "self.num_spec_tokens",
            "self.effective_drafter_max_model_len",
        ),
        "the runner keeps our proposer and its limits",
    ),
    Seam(
        RUNNER,
        "GPUModelRunner.propose_draft_token_ids",
        ("scheduler_output", "sampled_token_ids"),
        (
            "'custom_class'",
            "self.drafter).propose(sampled_token_ids,self.input_batch.num_tokens_no_spec,"
            "self.input_batch.token_ids_cpu,slot_mappings=slot_mappings)",
        ),
        "our proposer is asked, with these arguments",
    ),
    Seam(
        RUNNER,
        "GPUModelRunner.sample_tokens",
        ("grammar_output",),
        (
            "self._sample(",
            "self._input_fits_in_drafter(",
            "self._bookkeeping_sync(",
            "if draft_after_bookkeeping",
            "propose_draft_token_ids(valid_sampled_token_ids)",
        ),
        "the sampled ids are in the request's state before we are asked",
    ),
    Seam(
        RUNNER,
        "GPUModelRunner._bookkeeping_sync",
        (),
        (
            "req_ids=self.input_batch.req_ids",
            "self.input_batch.num_tokens_no_spec[req_idx]=end_idx",
            "self.requests[req_id]",
            "output_token_ids.extend(sampled_ids)",
        ),
        "row i is the request input_batch.req_ids[i], and its output is extended in place",
    ),
    Seam(
        RUNNER,
        "GPUModelRunner._input_fits_in_drafter",
        ("common_attn_metadata",),
        ("common_attn_metadata.max_seq_len", "self.effective_drafter_max_model_len"),
        "the repair of the length limit",
    ),
    Seam(
        RUNNER,
        "GPUModelRunner._update_states",
        ("scheduler_output",),
        ("scheduler_output.finished_req_ids", "self.requests.pop(req_id"),
        "finished requests leave runner.requests",
    ),
    Seam(
        "v1/worker/cpu_model_runner.py",
        "CPUModelRunner.load_model",
        (),
        ("self.drafter.load_model(",),
        "load_model",
    ),
    Seam("v1/worker/gpu_input_batch.py", "InputBatch.req_ids", (), ("self._req_ids",), "ids of the rows"),
    Seam(
        "v1/worker/gpu_input_batch.py",
        "CachedRequestState",
        (),
        (
            "prompt_token_ids:",
            "sampling_params:SamplingParams|None",
            "output_token_ids:list[int]",
            "lora_request:LoRARequest|None",
            "self.num_prompt_tokens=",
        ),
        "what is known of a request",
    ),
    Seam(
        "sampling_params.py",
        "SamplingParams",
        (),
        (
            "temperature:float",
            "seed:int|None",
            "stop:str|list[str]|None",
            "stop_token_ids:list[int]|None",
            "max_tokens:int|None",
            "extra_args:dict[str,Any]|None",
            "defeos_token_id(self)",
        ),
        "a request's limits and stop ids",
    ),
    Seam(
        "v1/worker/worker_base.py",
        "WorkerWrapperBase.init_worker",
        (),
        ("worker_extension_cls", "worker_class.__bases__+(worker_extension_cls,)"),
        "our worker extension is mixed in",
    ),
    Seam("v1/worker/worker_base.py", "WorkerBase.__init__", ("rank",), ("self.rank=rank",), "the worker's rank"),
    Seam(
        "v1/worker/gpu_worker.py",
        "Worker._init_workspace_and_model_runner",
        (),
        ("self.model_runner",),
        "the worker's runner",
    ),
    Seam("v1/worker/cpu_worker.py", "CPUWorker.init_device", (), ("self.model_runner=",), "the worker's runner"),
    Seam(
        "v1/executor/multiproc_executor.py",
        "MultiprocExecutor._get_output_rank",
        (),
        ("self.world_size", "tensor_parallel_size", "prefill_context_parallel_size"),
        "whose drafts are read",
    ),
    Seam(
        "v1/executor/multiproc_executor.py",
        "MultiprocExecutor.take_draft_token_ids",
        (),
        ("'take_draft_token_ids'", "unique_reply_rank=self.output_rank"),
        "one rank's drafts are read, and which",
    ),
    Seam("config/parallel.py", "ParallelConfig", (), ("data_parallel_index",), "which socket is ours"),
    Seam("config/speculative.py", "", (), ("'custom_class'",), "the method's name"),
    Seam(
        "config/vllm.py",
        "VllmConfig._get_v2_model_runner_unsupported_features",
        (),
        ("'custom_class'", 'unsupported.append(f"speculativemethod'),
        "vLLM takes its V1 runner for us",
    ),
    Seam(
        "v1/sample/rejection_sampler.py",
        "expand_batch_to_tokens",
        ("x", "cu_num_tokens", "num_tokens", "replace_from", "replace_to"),
        ("_expand(",),
        "the test of sampling parameters",
    ),
    Seam("v1/sample/rejection_sampler.py", "expand_kernel", (), (), "the kernel that the repair replaces"),
    Seam("triton_utils/dispatcher.py", "register_kernels", ("overrides",), (), "the registry of the repair"),
    Seam(
        "tokenizers/registry.py",
        "cached_tokenizer_from_config",
        ("model_config",),
        (),
        "the target's tokenizer",
    ),
    Seam(
        "plugins/__init__.py",
        "",
        (),
        (
            "ENDPOINT_PLUGINS_GROUP='vllm.endpoint_plugins'",
            "load_plugins_by_group(ENDPOINT_PLUGINS_GROUP)",
            "factory()",
        ),
        "our endpoint plugin is found and made",
    ),
    Seam(
        "plugins/endpoint_plugins/interface.py",
        "attach_endpoint_plugins",
        ("app",),
        ("plugin.attach_router(app)",),
        "our routes and our middleware",
    ),
    Seam(
        "plugins/endpoint_plugins/interface.py",
        "init_endpoint_plugins_state",
        ("engine_client", "state", "args"),
        ("plugin.init_state(engine_client,state,args)",),
        "the workers' proposers are bound",
    ),
    Seam(
        "entrypoints/launchers/app.py",
        "build_app",
        ("args",),
        ("register_api_routers(", "attach_endpoint_plugins(app", "init_entrypoints_middleware(args,app"),
        "our middleware runs after the key check: what is added last runs first",
    ),
    Seam(
        "entrypoints/serve/middleware/register.py",
        "init_entrypoints_middleware",
        ("args", "app"),
        ("app.add_middleware(AuthenticationMiddleware,tokens=tokens)",),
        "the key check is a middleware",
    ),
    Seam(
        "entrypoints/serve/middleware/authenticate.py",
        "",
        (),
        ("GUARDED_PREFIX=('/v1',", "url_path.startswith(GUARDED_PREFIX)", "self.verify_token("),
        "our routes are behind the key check",
    ),
    Seam(
        "tool_parsers/abstract_tool_parser.py",
        "ToolParser.extract_tool_calls",
        ("model_output", "request"),
        (),
        "our tool parser reads whole outputs",
    ),
    Seam(
        "tool_parsers/abstract_tool_parser.py",
        "ToolParser.extract_tool_calls_streaming",
        (
            "previous_text",
            "current_text",
            "delta_text",
            "previous_token_ids",
            "current_token_ids",
            "delta_token_ids",
            "request",
        ),
        (),
        "our tool parser reads streams",
    ),
    Seam(
        "parser/abstract_parser.py",
        "DelegatingParser._flush_engine_parsers",
        (),
        ("'engine_based_streaming'", "'finish_streaming'"),
        "our tool parser is told that a stream is over",
    ),
)

SERVE_SEAMS = (
    Seam(
        "entrypoints/cli/serve.py",
        "ServeSubcommand.cmd",
        ("args",),
        ("args.api_server_count>1", "run_multi_api_server(args)"),
        "several API servers",
    ),
    Seam("entrypoints/cli/serve.py", "ServeSubcommand.validate", ("self", "args"), (), "their flags are checked"),
    Seam(
        "entrypoints/cli/serve.py", "run_multi_api_server", (), ("setup_multiprocess_prometheus()",), "metrics add up"
    ),
    Seam(
        "entrypoints/cli/serve.py",
        "",
        (),
        ("make_arg_parser,", "make_arg_parser(serve_parser)"),
        "their flags are read",
    ),
    Seam("logger.py", "configure_logging_from_args", ("args",), (), "their logs"),
)
"""What `serve` relies on; without it only several API servers are out of reach."""


def check_seams(read: Read, seams: tuple[Seam, ...] = SEAMS) -> list[str]:
    """What of `seams` a vLLM lacks, one line each; empty: all is there."""
    trees: dict[str, ast.Module] = {}
    missing = []
    for seam in seams:
        where = f"vllm/{seam.file}" + (f" {seam.name}" if seam.name else "")
        try:
            tree = trees.get(seam.file) or trees.setdefault(seam.file, ast.parse(read(seam.file)))
        except (OSError, KeyError, SyntaxError) as error:
            missing.append(f"{where}: cannot be read ({type(error).__name__}), needed: {seam.why}")
            continue
        problem = _problem(tree, seam)
        if problem:
            missing.append(f"{where}: {problem}, needed: {seam.why}")
    return missing


def folder_reader(folder: Path) -> Read:
    """Reads the sources of an installed or unpacked vLLM, whose package is `folder`."""

    def read(file: str) -> str:
        return (folder / file).read_text(encoding="utf-8")

    return read


def wheel_reader(wheel: Path) -> Read:
    """Reads the sources inside a wheel file of vLLM."""

    def read(file: str) -> str:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(f"vllm/{file}").decode("utf-8")

    return read


def _problem(tree: ast.Module, seam: Seam) -> str:
    node: ast.AST | None = tree
    for part in filter(None, seam.name.split(".")):
        node = next((child for child in _definitions(node) if child.name == part), None)
        if node is None:
            return f"there is no {part!r}"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args
        names = iter([item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)])
        lacking = [name for name in seam.parameters if name not in names]
        if lacking:
            return f"parameter {lacking[0]!r} is missing or elsewhere"
    if not seam.mentions or node is None:
        return ""
    code = _squeezed(ast.unparse(node))
    position = 0
    for mention in seam.mentions:
        position = code.find(_squeezed(mention), position)
        if position < 0:
            return f"{mention!r} is missing or elsewhere"
    return ""


def _definitions(node: ast.AST | None) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in getattr(node, "body", []):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child


def _squeezed(code: str) -> str:
    return re.sub(r"\s+", "", code)
