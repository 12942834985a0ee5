"""The commands for targets. Nothing is started."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.process import LaunchPlan
from ooospec_agents.vllm_plugin import launch
from ooospec_agents.vllm_plugin.launch import plan_stock, plan_target

PLUGINS = EntryPoints(
    [
        EntryPoint("lora", "x:y", "vllm.general_plugins"),
        EntryPoint("other", "x:y", "vllm.endpoint_plugins"),
        EntryPoint("ooospec", "x:y", "vllm.endpoint_plugins"),
        EntryPoint("stats", "x:y", "vllm.stat_logger_plugins"),
        EntryPoint("console", "x:y", "console_scripts"),
    ]
)


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU build of vLLM with OpenMP and the plugins above, and an environment without opinions."""
    for name in ("VLLM_PLUGINS", "LD_PRELOAD", "KMP_BLOCKTIME", "VLLM_CPU_KVCACHE_SPACE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("VLLM_USE_RUST_FRONTEND", raising=False)
    monkeypatch.setattr(launch, "on_cpu", lambda: True)
    monkeypatch.setattr(launch, "_intel_openmp", lambda: Path("/lib/libiomp5.so"))
    entry_points(monkeypatch, PLUGINS)


def entry_points(monkeypatch: pytest.MonkeyPatch, points: EntryPoints) -> None:
    def select(**params: Any) -> EntryPoints:
        return points.select(**params) if params else points

    monkeypatch.setattr(launch.metadata, "entry_points", select)


def after(plan: LaunchPlan, flag: str) -> str:
    return plan.argv[plan.argv.index(flag) + 1]


@pytest.mark.parametrize(
    ("extra", "module"),
    [
        ([], "vllm.entrypoints.openai.api_server"),
        (["--api-server-count", "1"], "vllm.entrypoints.openai.api_server"),
        (["--api-server-count", "2"], "ooospec_agents.vllm_plugin.serve"),
        (["--api_server_count=3"], "ooospec_agents.vllm_plugin.serve"),
        (["-asc", "2"], "ooospec_agents.vllm_plugin.serve"),
        (["--data-parallel-size", "2"], "vllm.entrypoints.openai.api_server"),
    ],
)
def test_several_api_servers_are_served_by_what_heeds_their_number(extra: list[str], module: str) -> None:
    for plan in (plan_target("org/model", extra_args=extra), plan_stock("org/model", extra_args=extra)):
        assert plan.argv[2] == module


def test_target_has_our_proposer_extension_and_parser() -> None:
    plan = plan_target("org/model", port=8001)
    assert plan.argv[1:9] == [
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--model", "org/model", "--host", "127.0.0.1", "--port", "8001"),
    ]
    assert json.loads(after(plan, "--speculative-config")) == {
        "method": "custom_class",
        "model": "ooospec_agents.vllm_plugin.proposer.Proposer",
        "num_speculative_tokens": 40,
    }
    assert after(plan, "--worker-extension-cls") == "ooospec_agents.vllm_plugin.extension.Extension"
    assert after(plan, "--tool-call-parser") == "ooospec_json"
    assert "--enable-auto-tool-choice" in plan.argv
    assert plan.notes == ()


def test_cpu_flags_and_environment() -> None:
    plan = plan_target("org/model")
    assert after(plan, "--block-size") == "32"
    assert "--enforce-eager" in plan.argv
    wanted = {"LD_PRELOAD": "/lib/libiomp5.so", "KMP_BLOCKTIME": "1", "VLLM_CPU_KVCACHE_SPACE": "2"}
    assert wanted.items() <= plan.env.items()


def test_gpu_has_none_of_them_and_shorter_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "on_cpu", lambda: False)
    plan = plan_target("org/model")
    assert json.loads(after(plan, "--speculative-config"))["num_speculative_tokens"] == 15
    assert "--block-size" not in plan.argv
    assert set(plan.env) == {"VLLM_PLUGINS", "OOOSPEC_SOCKET_DIR"}


def test_environment_of_the_user_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "9")
    monkeypatch.setenv("LD_PRELOAD", "/x.so")
    plan = plan_target("org/model")
    assert "VLLM_CPU_KVCACHE_SPACE" not in plan.env
    assert plan.env["LD_PRELOAD"] == "/lib/libiomp5.so:/x.so"


def test_missing_openmp_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_intel_openmp", lambda: None)
    [note] = plan_target("org/model").notes
    assert "pip install intel-openmp" in note


def test_flags_of_the_user_win() -> None:
    extra = ["--block_size=64", "--tool-call-parser", "hermes", "--enforce-eager"]
    plan = plan_target("org/model", extra_args=extra)
    assert plan.argv.count("--enforce-eager") == 1
    assert "--block-size" not in plan.argv
    assert after(plan, "--tool-call-parser") == "hermes"
    assert "--tool-parser-plugin" not in plan.argv


def test_flags_in_a_config_file_win(tmp_path: Path) -> None:
    config = tmp_path / "vllm.yaml"
    config.write_text("block-size: 64\ntool_call_parser: hermes\n")
    plan = plan_target("org/model", extra_args=["--config", str(config)])
    assert "--block-size" not in plan.argv
    assert "--tool-call-parser" not in plan.argv


def test_local_folder_needs_no_hub(tmp_path: Path) -> None:
    assert plan_target(str(tmp_path)).env["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in plan_target("org/model").env


def test_plugins_that_were_on_stay_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan_target("org/model").env["VLLM_PLUGINS"] == "lora,stats,ooospec"
    monkeypatch.setenv("VLLM_PLUGINS", "other")
    assert plan_target("org/model").env["VLLM_PLUGINS"] == "other,ooospec"


def test_sidecar_and_replay_go_by_the_environment() -> None:
    plan = plan_target("m", sidecar="http://s", sidecar_model="a", sidecar_api_key="k", allow_replay=True)
    wanted = {
        "OOOSPEC_SIDECAR_URL": "http://s",
        "OOOSPEC_SIDECAR_MODEL": "a",
        "OOOSPEC_SIDECAR_API_KEY": "k",
        "OOOSPEC_ALLOW_REPLAY": "1",
    }
    assert wanted.items() <= plan.env.items()
    assert not {"OOOSPEC_ALLOW_REPLAY", "OOOSPEC_SIDECAR_URL"} & plan_target("m").env.keys()


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--pipeline-parallel-size", "2"], "--pipeline-parallel-size 2"),
        (["-pp=2"], "--pipeline-parallel-size 2"),
        (["--speculative_config", "{}"], "speculation of your own"),
        (["--speculative-config.method", "ngram"], "speculation of your own"),
        (["--worker-extension-cls", "a.B"], "'a.B'"),
        (["--logits-processors", "a:B"], "logits processors"),
    ],
)
def test_where_vllm_cannot_the_plan_is_plain_and_says_why(extra: list[str], said: str) -> None:
    plan = plan_target("org/model", extra_args=extra)
    assert said in plan.notes[0]
    assert plan.argv == plan_stock("org/model", extra_args=extra).argv
    assert "VLLM_PLUGINS" not in plan.env


def test_single_pipeline_stage_is_no_obstacle() -> None:
    assert plan_target("org/model", extra_args=["-pp", "1"]).notes == ()


def test_installed_logits_processors_are_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points(monkeypatch, EntryPoints([EntryPoint("mine", "a:b", "vllm.logits_processors")]))
    assert "mine" in plan_target("org/model").notes[0]


def test_min_p_by_default_is_an_obstacle(tmp_path: Path) -> None:
    config = tmp_path / "generation_config.json"
    config.write_text('{"min_p": 0.1}')
    assert "min_p" in plan_target(str(tmp_path)).notes[0]
    config.write_text('{"top_p": 0.8}')
    assert plan_target(str(tmp_path)).notes == ()


def test_rust_front_end_is_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_USE_RUST_FRONTEND", "1")
    assert "VLLM_USE_RUST_FRONTEND" in plan_target("org/model").notes[0]


def test_stock_is_the_target_without_us() -> None:
    ours, stock = plan_target("org/model"), plan_stock("org/model")
    at = ours.argv.index("--speculative-config")
    assert ours.argv[:at] == stock.argv
    assert stock.env == {k: v for k, v in ours.env.items() if k not in ("VLLM_PLUGINS", "OOOSPEC_SOCKET_DIR")}
    suffix = plan_stock("org/model", speculative_config={"method": "suffix"})
    assert after(suffix, "--speculative-config") == '{"method": "suffix"}'


def test_shell_text_reads_back_as_the_command() -> None:
    plan = LaunchPlan(["py", "-m", "x y", "--a", '{"b": 1}'], {"E": "1 2"}, private_folders=("/t",))
    words = shlex.split(plan.shell().replace("\\\n", ""))
    assert words == ["mkdir", "-p", "-m", "700", "/t", "&&", "E=1 2", "py", "-m", "x y", "--a", '{"b": 1}']


def test_a_predictor_is_named_to_the_server_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(launch.PREDICTOR, raising=False)
    assert launch.PREDICTOR not in plan_target("org/model").env
    assert plan_target("org/model", predictor="/some/folder").env[launch.PREDICTOR] == "/some/folder"
    monkeypatch.setenv(launch.PREDICTOR, "/inherited")
    assert plan_target("org/model").env[launch.PREDICTOR] == "lexical"
