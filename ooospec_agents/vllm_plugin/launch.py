"""The commands that start a target: vLLM with our plugin, or plain vLLM with otherwise equal flags."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ooospec_agents.process import LaunchPlan
from ooospec_agents.processor import multiplies_bfloat16
from ooospec_agents.vllm_plugin.holdout import HOLDOUT, read_share
from ooospec_agents.vllm_plugin.tenancy import TENANT_HEADER

PLUGIN_NAME = "ooospec"
PROPOSER = "ooospec_agents.vllm_plugin.proposer.Proposer"
EXTENSION = "ooospec_agents.vllm_plugin.extension.Extension"
PARSER_PLUGIN = "ooospec_agents.vllm_plugin.fenced_parser"
PARSER_NAME = "ooospec_json"

ONE_SERVER = "vllm.entrypoints.openai.api_server"
SEVERAL_SERVERS = "ooospec_agents.vllm_plugin.serve"
"""Modules that serve with one API server, and with several, which the first would not start."""

SOCKET_DIR_PREFIX = "ooospec-sockets-"
"""Folders of this name are removed when their server ends."""
SIDECAR_URL = "OOOSPEC_SIDECAR_URL"
SIDECAR_MODEL = "OOOSPEC_SIDECAR_MODEL"
SIDECAR_API_KEY = "OOOSPEC_SIDECAR_API_KEY"
SIDECAR_SHARES = "OOOSPEC_SIDECAR_SHARES"
"""Set to "1" where sidecar and target share their cores: waves are then narrow, and run only while they gain."""

OFF = "OOOSPEC_OFF"
"""Environment variable: set to "1", nothing is drafted for anyone."""

LEXICAL, NO_GUESSES = "lexical", "none"
PREDICTOR = "OOOSPEC_PREDICTOR"
"""The span predictor's folder, "lexical" (no encoder), or "none" (no guesses at all)."""

CPU_DRAFT_TOKENS = 40
"""Draft tokens a step at most on the CPU: a long draft costs nothing unless it is used."""
GPU_DRAFT_TOKENS = 15
"""The same on a GPU: with the token being verified it fills a CUDA graph of 16."""
CPU_BLOCK_SIZE = 32
"""Tokens of a KV block on the CPU. With vLLM's 128, up to 127 known prompt tokens are computed again."""
CPU_KV_GIB = 2

_SPECULATION = ("--speculative-config", "-sc", "--spec-method", "--spec-model", "--spec-tokens")


def plan_target(
    model: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    sidecar: str | None = None,
    sidecar_model: str | None = None,
    sidecar_api_key: str | None = None,
    predictor: str = LEXICAL,
    allow_replay: bool = False,
    holdout: str = "",
    tenant_header: str = "",
    draft_tokens: int | None = None,
    extra_args: Sequence[str] = (),
) -> LaunchPlan:
    """The command for a target with out-of-order speculation.

    Where vLLM cannot speculate with us, the plan is that of a plain server, and its notes say why.

    Args:
        model: A local folder or a hub name.
        host: Address to listen on.
        port: Port to listen on.
        sidecar: Base URL of a sidecar that works for every request of this server, or None.
        sidecar_model: The sidecar's model name; None: the only one it serves.
        sidecar_api_key: The sidecar's key, if it wants one.
        predictor: Folder of a span predictor that hints in this server, `LEXICAL` or `NO_GUESSES`.
        allow_replay: Whether clients may have recorded token ids drafted (measurements only).
        holdout: Share of requests served undrafted to measure the gain, like "2%"; "": none.
        tenant_header: Header that says whose request it is, besides the API key; "": the key alone.
        draft_tokens: Draft tokens a step at most; None: what suits the machine.
        extra_args: Further flags for vLLM. They win over ours.

    Raises:
        ValueError: `holdout` is no share.
    """
    flags = _Flags(extra_args)
    if obstacle := _obstacle(model, flags):
        note = f"this server drafts nothing: {obstacle}"
        plan = plan_stock(model, host=host, port=port, extra_args=extra_args)
        return LaunchPlan(plan.argv, plan.env, notes=(note, *plan.notes))
    tokens = draft_tokens or (CPU_DRAFT_TOKENS if on_cpu() else GPU_DRAFT_TOKENS)
    speculation = {"method": "custom_class", "model": PROPOSER, "num_speculative_tokens": tokens}
    plan = plan_stock(model, host=host, port=port, extra_args=extra_args, speculative_config=speculation)
    sockets = f"{tempfile.gettempdir()}/{SOCKET_DIR_PREFIX}{os.getuid()}-{secrets.token_hex(4)}"
    env = {**plan.env, "VLLM_PLUGINS": ",".join(_plugins()), "OOOSPEC_SOCKET_DIR": sockets}
    if predictor != LEXICAL or PREDICTOR in os.environ:
        env[PREDICTOR] = predictor
    if sidecar:
        env[SIDECAR_URL] = sidecar
        env |= {SIDECAR_MODEL: sidecar_model} if sidecar_model else {}
        env |= {SIDECAR_API_KEY: sidecar_api_key} if sidecar_api_key else {}
        if SIDECAR_SHARES not in os.environ:
            env[SIDECAR_SHARES] = "1" if on_cpu() and _is_here(sidecar) else "0"
    if holdout:
        env[HOLDOUT] = str(read_share(holdout))
    if tenant_header:
        env[TENANT_HEADER] = tenant_header
    if allow_replay:
        env["OOOSPEC_ALLOW_REPLAY"] = "1"
    argv = [*plan.argv, "--worker-extension-cls", EXTENSION]
    return LaunchPlan(argv, env, private_folders=(sockets,), notes=plan.notes)


def plan_stock(
    model: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    speculative_config: Mapping[str, Any] | None = None,
    extra_args: Sequence[str] = (),
) -> LaunchPlan:
    """The command for vLLM without our plugin, in all else as `plan_target`'s: what we compare with.

    Args:
        model: A local folder or a hub name.
        host: Address to listen on.
        port: Port to listen on.
        speculative_config: vLLM's own speculation, like `{"method": "suffix", "num_speculative_tokens": 24}`.
        extra_args: Further flags for vLLM. They win over ours.
    """
    flags = _Flags(extra_args)
    argv = [sys.executable, "-m", SEVERAL_SERVERS if flags.api_servers() > 1 else ONE_SERVER]
    argv += ["--model", model, "--host", host, "--port", str(port)]
    if not flags.given("--tool-call-parser"):
        argv += ["--tool-parser-plugin", PARSER_PLUGIN, "--tool-call-parser", PARSER_NAME]
        argv += ["--enable-auto-tool-choice"]
    env: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    if on_cpu():
        if not flags.given("--block-size"):
            argv += ["--block-size", str(CPU_BLOCK_SIZE)]
        if not flags.given("--enforce-eager", "--no-enforce-eager"):
            argv += ["--enforce-eager"]
        if not flags.given("--dtype") and not multiplies_bfloat16():
            argv += ["--dtype", "float32"]
        env, notes = _cpu_environment()
    if Path(model).is_dir() and "HF_HUB_OFFLINE" not in os.environ:
        env["HF_HUB_OFFLINE"] = "1"
    if speculative_config is not None:
        argv += ["--speculative-config", json.dumps(dict(speculative_config))]
    return LaunchPlan([*argv, *extra_args], env, notes=notes)


def switched_off() -> bool:
    """Whether the environment forbids drafting."""
    return os.environ.get(OFF, "0").lower() not in ("", "0", "false")


def on_cpu() -> bool:
    """Whether the installed vLLM is a build for the CPU."""
    return "+cpu" in vllm_version() or _installed("vllm-cpu")


def _is_here(url: str) -> bool:
    return (urlsplit(url).hostname or "") in {"localhost", "127.0.0.1", "::1"}


def vllm_version() -> str:
    """The version of the installed vLLM, under whichever name it was distributed; "" without one."""
    for name in ("vllm", "vllm-cpu"):
        if _installed(name):
            return metadata.version(name)
    return ""


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _cpu_environment() -> tuple[dict[str, str], tuple[str, ...]]:
    env: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    preloaded = os.environ.get("LD_PRELOAD", "")
    if "iomp5" not in preloaded:
        library = _intel_openmp()
        if library is None:
            notes = ("Intel's OpenMP was not found, so verifying drafts is slower: pip install intel-openmp",)
        else:
            env["LD_PRELOAD"] = ":".join(filter(None, [str(library), preloaded]))
    defaults = {
        "KMP_BLOCKTIME": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(CPU_KV_GIB),
    }  # 1 ms: idle servers do not spin
    env |= {name: value for name, value in defaults.items() if name not in os.environ}
    return env, notes


def _intel_openmp() -> Path | None:
    try:
        files = metadata.files("intel-openmp") or []
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())).resolve() for file in files if file.name == "libiomp5.so")
    return next((path for path in found if path.is_file()), None)


def _plugins() -> list[str]:
    """What `VLLM_PLUGINS` must say: it is an allow list for every kind of plugin, not for ours alone."""
    if (allowed := os.environ.get("VLLM_PLUGINS")) is not None:
        names = [name.strip() for name in allowed.split(",") if name.strip()]
    else:
        # Endpoint plugins load only if they are named: without the variable the others were off.
        installed = metadata.entry_points()
        groups = sorted(g for g in installed.groups if g.startswith("vllm.") and g != "vllm.endpoint_plugins")
        names = sorted({point.name for group in groups for point in installed.select(group=group)})
    return [*(name for name in names if name != PLUGIN_NAME), PLUGIN_NAME]


def _obstacle(model: str, flags: _Flags) -> str:
    """Why vLLM cannot speculate with us under these flags, as the end of a sentence; "" if it can."""
    if switched_off():
        return f"{OFF} is set"
    if flags.given(*_SPECULATION):
        return "speculation of your own is configured; remove that flag to use ours"
    if flags.given("--worker-extension-cls"):
        return f"{flags.value('--worker-extension-cls')!r} takes the only place for a worker extension"
    for flag, short in (("--pipeline-parallel-size", "-pp"), ("--nnodes", "-n")):
        value = flags.value(flag) or flags.value(short) or "1"
        if value != "1":
            return f"vLLM cannot draft with {flag} {value}; 1 works"
    if flags.given("--logits-processors"):
        return "vLLM refuses logits processors under speculation"
    if processors := sorted(p.name for p in metadata.entry_points(group="vllm.logits_processors")):
        return f"vLLM would silently not load the installed logits processors {', '.join(processors)}"
    if not flags.given("--generation-config", "--override-generation-config") and _defaults_to_min_p(model):
        return "the model's generation_config.json sets min_p, which vLLM refuses under speculation"
    if os.environ.get("VLLM_USE_RUST_FRONTEND", "0").lower() not in ("", "0", "false"):
        return "VLLM_USE_RUST_FRONTEND is set, and that front end runs no plugins"
    return ""


def _defaults_to_min_p(model: str) -> bool:
    """Whether every request would have `min_p` by default. Only a local folder can be looked into."""
    try:
        config = json.loads((Path(model) / "generation_config.json").read_text())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and bool(config.get("min_p"))


class _Flags:
    """What the user's flags say, in any of the spellings that vLLM takes."""

    def __init__(self, args: Sequence[str]) -> None:
        self._values: dict[str, str] = {}
        for index, word in enumerate(args):
            if not word.startswith("-"):
                continue
            name, has_value, value = word.partition("=")
            follows = args[index + 1] if index + 1 < len(args) and not args[index + 1].startswith("-") else ""
            name = name.replace("_", "-") if name.startswith("--") else name
            self._values[name.partition(".")[0]] = value if has_value else follows
        if self._values.get("--config"):
            self._read_config(self._values["--config"])

    def _read_config(self, path: str) -> None:
        """The top-level keys of vLLM's YAML file: the command line wins over it, so ours must stay away."""
        try:
            text = Path(path).read_text()
        except (OSError, ValueError):
            return  # vLLM says so
        for name, value in re.findall(r"^([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*?)[ \t]*$", text, re.MULTILINE):
            self._values.setdefault("--" + name.replace("_", "-"), value.strip("\"'"))

    def given(self, *names: str) -> bool:
        """Whether one of the flags is there."""
        return any(name in self._values for name in names)

    def api_servers(self) -> int:
        """How many API servers are asked for; vLLM itself says what is wrong with a number that is none."""
        text = self.value("--api-server-count") or self.value("-asc") or "1"
        return int(text) if text.isdecimal() else 1

    def value(self, name: str) -> str:
        """The value of a flag, or ""."""
        return self._values.get(name, "")
