"""The whole command, over servers in memory."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from typer.testing import CliRunner

from ooospec_agents.bench import bench_command
from ooospec_agents.bench.bench_command import PROFILES, main
from ooospec_agents.bench.explain import Run
from ooospec_agents.bench.results import BEGIN, END, render, with_figures
from ooospec_agents.bench.servers import Server
from ooospec_agents.sidecar.backend import Completion

app = typer.Typer()
app.command()(main)


class Codec:
    def decode(self, ids: Any) -> str:
        return "".join(map(str, ids))


class Sidecar:
    """A backend that says the first tool and Oslo, and notes what it was asked."""

    def __init__(self, *_: Any) -> None:
        self.prompts: list[str] = []

    async def complete(self, prompts: Any, max_tokens: int) -> list[Completion]:
        asked.extend(prompts)
        return [Completion(" 0" if "Which tool" in prompt[-90:] else '"Oslo"') for prompt in prompts]

    async def trained(self) -> bool:
        return True

    async def aclose(self) -> None:
        pass


asked: list[str] = []


@pytest.fixture
def started(target: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Servers in memory; the names of those that were started and, with a minus, ended."""
    names: list[str] = []

    def starter(kind: str) -> Any:
        @contextmanager
        def start(*arguments: Any, **options: Any) -> Any:
            name = arguments[2] if kind == "stock" and len(arguments) > 2 else kind
            names.append(name)
            yield Server(f"http://{name}", name)
            names.append(f"-{name}")

        return start

    for kind in ("stock", "ours", "sidecar"):
        monkeypatch.setattr(bench_command, kind, starter(kind))
    monkeypatch.setattr(bench_command, "CompletionsClient", Sidecar)
    client, answer = httpx.Client, httpx.MockTransport(target.answer)
    monkeypatch.setattr(bench_command.httpx, "Client", lambda **_: client(transport=answer))
    monkeypatch.setattr(bench_command, "codec_of", lambda folder: (Codec(), (0,)))
    monkeypatch.setattr(bench_command, "resolve", Path)
    monkeypatch.setattr(bench_command, "server_gib", lambda setup: 10.0)
    monkeypatch.setattr(bench_command, "free_gib", lambda: 100.0)
    monkeypatch.setattr(bench_command, "on_cpu", lambda: True)
    asked.clear()
    return names


def data(tmp_path: Path, make_item: Any, count: int = 3) -> Path:
    items = [make_item(number) for number in range(count)]
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps({**vars(item), "gold": GOLD}) + "\n" for item in items))
    return path


GOLD = [{"name": "get_weather", "arguments": {"city": "Oslo"}}]


def bench(tmp_path: Path, *arguments: str, **options: Any) -> tuple[Any, Path]:
    out = tmp_path / "results.json"
    given = ["--target", "m", "--data", str(tmp_path / "set.jsonl"), "--out", str(out), *arguments]
    return CliRunner().invoke(app, given), out


def raw_methods(out: Path) -> list[str]:
    return [row["method"] for row in Run.read(out.with_suffix(".jsonl")).rows]


def methods(*names: str) -> list[str]:
    return [part for name in names for part in ("--method", name)]


def test_a_row_has_the_promised_fields(started: list[str], tmp_path: Path, make_item: Any) -> None:
    data(tmp_path, make_item)
    result, out = bench(
        tmp_path, *methods("ar", "lexical", "ooospec"), "--hints", "degraded:0.64", "--hints", "sidecar"
    )
    assert result.exit_code == 0, result.output
    rows = {(row["method"], row["hints"]): row for row in json.loads(out.read_text())["rows"]}
    assert set(rows) == {("ar", ""), ("lexical", ""), ("ooospec", "degraded:0.64"), ("ooospec", "sidecar")}
    row = rows["ooospec", "degraded:0.64"]
    promised = (
        "target, dataset, method, setting, n, speedup, speedup_low, speedup_high, speedup_tokens, steps, "
        "acceptance_length, identical"
    )
    assert set(promised.split(", ")) <= set(row)
    assert (row["target"], row["dataset"], row["setting"], row["n"]) == ("m", "set", "shared", 3)
    assert (row["steps"], row["acceptance_length"], row["identical"]) == (6, 4.0, 1.0)
    assert row["as_reference"] == 1.0
    assert row["first_s"] > 0
    assert row["hint_bytes"] > 20
    assert started == ["stock", "sidecar", "ours", "-ours", "-sidecar", "-stock"]
    assert "| ooospec (degraded:0.64) | 3 |" in render(tmp_path)


def test_the_sidecar_is_warmed_without_the_last_message(started: list[str], tmp_path: Path, make_item: Any) -> None:
    data(tmp_path, make_item, 1)
    result, _ = bench(tmp_path, *methods("ooospec"))
    assert result.exit_code == 0, result.output
    assert len(asked) == 1
    assert "get_weather" in asked[0]
    assert "Oslo 0" not in asked[0]


def test_own_setting_records_the_sidecar_alone_first(
    started: list[str], target: Any, tmp_path: Path, make_item: Any
) -> None:
    data(tmp_path, make_item, 2)
    result, out = bench(tmp_path, *methods("ar", "ooospec"), "--setting", "own")
    assert result.exit_code == 0, result.output
    assert started == ["sidecar", "-sidecar", "stock", "ours", "-ours", "-stock"]
    waves = [row["wave"] for row in Run.read(out.with_suffix(".jsonl")).rows if row["method"] == "wave"]
    assert [json.loads(wave["hint"])["calls"][0]["slots"]["city"]["value"] for wave in waves] == ["Oslo", "Oslo"]
    assert all(wave["delay_s"] > 0 for wave in waves)
    started.clear()
    asked.clear()
    bench(tmp_path, *methods("ar", "ooospec"), "--setting", "own")
    assert (started, asked) == ([], [])  # nothing was left to do


def test_both_settings_in_one_run(started: list[str], target: Any, tmp_path: Path, make_item: Any) -> None:
    data(tmp_path, make_item, 2)
    result, out = bench(tmp_path, *methods("ar", "lexical", "ooospec"), "--setting", "both")
    assert result.exit_code == 0, result.output
    assert started == ["sidecar", "-sidecar", "stock", "sidecar", "ours", "-ours", "-sidecar", "-stock"]
    rows = [(row["method"], row["hints"], row["setting"]) for row in json.loads(out.read_text())["rows"]]
    assert rows == [
        ("ar", "", "both"), ("lexical", "", "both"),
        ("ooospec", "sidecar", "own"), ("ooospec", "sidecar", "shared"),
    ]  # fmt: skip
    timed = [body["vllm_xargs"] for _, body in target.bodies if body.get("vllm_xargs", {}).get("ooospec_report")]
    # To the one, what was recorded is posted; for the other, the server asks the sidecar itself.
    assert sorted("ooospec_id" in xargs for xargs in timed if xargs["ooospec"] == "ooospec") == [
        False,
        False,
        True,
        True,
    ]
    assert len([method for method in raw_methods(out) if method == "wave"]) == 2
    page = render(tmp_path)
    assert "settings `own` and `shared`" in page
    assert "| ooospec (sidecar, own) | 2 |" in page
    assert "| ooospec (sidecar, shared) | 2 |" in page
    lines = with_figures(f"{BEGIN}{END}", tmp_path).splitlines()
    assert [line.split(" | ")[2] for line in lines[3:-1]] == ["own", "shared"]


def test_servers_take_turns_where_memory_is_short(
    started: list[str], tmp_path: Path, make_item: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_command, "free_gib", lambda: 16.0)
    data(tmp_path, make_item, 3)
    result, out = bench(tmp_path, *methods("ar", "perfect", "suffix"), "--block", "2")
    assert result.exit_code == 0, result.output
    begun = [name for name in started if not name.startswith("-")]
    assert begun == ["stock", "ours", "suffix", "suffix", "ours", "stock"]
    assert started[1] == "-stock"  # one at a time
    found = json.loads(out.read_text())
    assert found["servers"] == (
        "in turn, for want of memory: blocks of 2 requests alternate between stock and ours and suffix"
    )
    assert [row["n"] for row in found["rows"]] == [3, 3, 3]


def test_stopped_and_resumed_gives_the_same_rows(
    started: list[str], target: Any, tmp_path: Path, make_item: Any
) -> None:
    data(tmp_path, make_item, 3)
    asked_so_far: list[int] = []

    def stop(host: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        asked_so_far.append(1)
        if len(asked_so_far) == 7:
            raise KeyboardInterrupt

    target.change = stop
    assert bench(tmp_path, *methods("ar", "lexical"))[0].exit_code != 0
    target.change = lambda *_: None
    result, out = bench(tmp_path, *methods("ar", "lexical"))
    assert result.exit_code == 0, result.output
    assert "left]" in result.output
    rows = json.loads(out.read_text())["rows"]
    raw = Run.read(out.with_suffix(".jsonl")).rows
    timed = [(row["item"], row["method"]) for row in raw if row["method"] in ("ar", "lexical")]
    assert len(timed) == len(set(timed)) == 6
    assert [(row["method"], row["n"], row["steps"]) for row in rows] == [("ar", 3, 24), ("lexical", 3, 6)]


def test_a_run_explains_itself(started: list[str], tmp_path: Path, make_item: Any) -> None:
    data(tmp_path, make_item, 2)
    _, out = bench(tmp_path, *methods("ar", "lexical"))
    run = Run.read(out.with_suffix(".jsonl"))
    assert [item.id for item in run.items()] == ["r0", "r1"]
    assert run.items()[0].gold == GOLD


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "fast"], "Unknown method 'fast'"),
        (["--data", "nowhere"], "No data set 'nowhere'"),
        (["--profile", "slow"], "Unknown profile 'slow'"),
    ],
)
def test_what_is_unknown_is_one_line(
    started: list[str], tmp_path: Path, make_item: Any, arguments: list[str], said: str
) -> None:
    data(tmp_path, make_item, 1)
    result, _ = bench(tmp_path, *arguments)
    assert (result.exit_code, started) == (1, [])
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_profiles_name_methods_that_exist() -> None:
    for profile in PROFILES.values():
        assert all(bench_command.method_named(name) for name in profile.methods)
