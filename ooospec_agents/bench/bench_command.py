"""`ooospec bench`: every method on the same requests in one run; the ratios, and every answer beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
import typer

from ooospec_agents.bench.blocks import groups, turns
from ooospec_agents.bench.data import DataError, Item, load_named, prompt_length, take
from ooospec_agents.bench.explain import Run
from ooospec_agents.bench.ledger import Decode, fingerprint
from ooospec_agents.bench.methods import (
    DRAFTERS,
    BenchMethod,
    Kind,
    UnknownMethod,
    method_named,
    setting_of,
    with_hints,
    with_settings,
)
from ooospec_agents.bench.paired import Helpers, PairedRun, Plan
from ooospec_agents.bench.progress import TimeLeft
from ooospec_agents.bench.rawlog import OtherRun, RawLog
from ooospec_agents.bench.redraft import codec_of
from ooospec_agents.bench.report import render, run_data
from ooospec_agents.bench.requests import LIMITS
from ooospec_agents.bench.rest import WATCH_S
from ooospec_agents.bench.servers import (
    SIDECAR_GIB,
    Server,
    Setup,
    SidecarSetup,
    free_gib,
    ours,
    server_gib,
    sidecar,
    stock,
)
from ooospec_agents.bench.summary import save, summarize
from ooospec_agents.bench.waves import RecordedWave, SidecarProbe
from ooospec_agents.predictor.folder import PredictorError, find
from ooospec_agents.sidecar.adapters import adapter_for
from ooospec_agents.sidecar.client import CompletionsClient
from ooospec_agents.vllm_plugin.launch import LEXICAL, on_cpu
from ooospec_agents.weights import WeightsError, resolve

Setting = Literal["own", "shared", "both"]


@dataclass(frozen=True)
class Profile:
    """What is measured unless said otherwise: methods, and requests of each data set."""

    methods: tuple[str, ...]
    limit: int | None


PROFILES: Mapping[str, Profile] = {
    "quick": Profile(("ar", "suffix", "lexical", "ooospec"), 4),
    "full": Profile(
        ("ar", "off", "ngram", "suffix", "suffix-bold", "toolspec", "lexical", "ooospec", "perfect", "ceiling"), None
    ),
}
"""`quick` takes under 20 minutes on two cores; `full` goes through everything, hours there, and can be stopped."""


@dataclass(frozen=True)
class Bench:
    """A run: what is measured, on which servers.

    Attributes:
        setup: What the targets have in common.
        plan: What is asked and how.
        helper: The sidecar: its model, adapter, cores or GPU, and further flags.
        block: Requests that a group of servers answers before the next takes its place.
        logs: Folder of the servers' logs.
        predictor: Folder of the span predictor that hints in our server, or "lexical".
    """

    setup: Setup
    plan: Plan
    helper: SidecarSetup
    block: int
    logs: Path
    predictor: str = LEXICAL

    @property
    def waves(self) -> bool:
        """Whether any method asks the sidecar."""
        return any(method.hint == "sidecar" for method in self.plan.methods)

    @property
    def replays(self) -> bool:
        """Whether any method is sent what the sidecar answered while it ran alone."""
        return any(method.hint == "sidecar" and not self.plan.beside(method) for method in self.plan.methods)

    def groups(self, free: float | None = None) -> list[list[Kind]]:
        """The servers, in groups that run at once."""
        kinds = list(dict.fromkeys(method.server for method in self.plan.methods))
        if not on_cpu():  # vLLM takes what it is told to of a GPU's memory: one target at a time
            return [[kind] for kind in kinds]
        need = server_gib(self.setup)
        beside = SIDECAR_GIB if any(map(self.plan.beside, self.plan.methods)) else 0.0
        needs = {kind: need + (beside if kind == "ours" else 0.0) for kind in kinds}
        return groups(needs, free_gib() if free is None else free)

    def run(self, items: Sequence[Item], raw: RawLog, made: Sequence[list[Kind]], decode: Decode | None) -> None:
        """Answer everything that the raw log lacks."""
        with httpx.Client(timeout=1200, limits=LIMITS) as client:
            waves = self._waves(items, raw) if self.replays else {}
            left = TimeLeft(len(items) * len(self.plan.methods), self._done(items, raw))
            for group, part in turns(items, made, self.block):
                methods = [method for method in self.plan.methods if method.server in group]
                if all(self._is_done(method, item, raw) for method in methods for item in part):
                    continue
                with self._servers(group, methods) as (servers, helpers):
                    helpers = replace(helpers, waves=waves, decode=decode)
                    PairedRun(servers, self.plan, client, raw, helpers).run(part, progress=left.say)

    def _done(self, items: Sequence[Item], raw: RawLog) -> int:
        return sum(self._is_done(method, item, raw) for method in self.plan.methods for item in items)

    @staticmethod
    def _is_done(method: BenchMethod, item: Item, raw: RawLog) -> bool:
        return raw.find(item=item.id, dataset=item.dataset, method=method.name) is not None

    def _waves(self, items: Sequence[Item], raw: RawLog) -> dict[tuple[str, str], RecordedWave]:
        """The sidecar's answers and delays while it runs alone; those that the raw log has are taken from it."""
        known = {(row["dataset"], row["item"]): row["wave"] for row in raw.rows if row["method"] == "wave"}
        missing = [item for item in items if (item.dataset, item.id) not in known]
        if missing:
            with self._sidecar() as (probe, _):
                for number, item in enumerate(missing, start=1):
                    probe.warm(item)
                    wave = probe.wave(item).to_json()
                    raw.add({"item": item.id, "dataset": item.dataset, "method": "wave", "wave": wave})
                    known[item.dataset, item.id] = wave
                    typer.echo(f"[{number}/{len(missing)}] {item.id} wave: {wave['delay_s']:.2f} s", err=True)
        return {key: RecordedWave(**wave) for key, wave in known.items()}

    @contextmanager
    def _sidecar(self) -> Iterator[tuple[SidecarProbe, Server]]:
        with sidecar(self.helper, self.logs) as server:
            backend = CompletionsClient(server.url, server.model)
            probe = SidecarProbe(backend, required=self.plan.tool_choice == "required")
            try:
                yield probe, server
            finally:
                probe.close()

    @contextmanager
    def _servers(
        self, group: Sequence[Kind], methods: Sequence[BenchMethod]
    ) -> Iterator[tuple[dict[Kind, Server], Helpers]]:
        with ExitStack() as stack:
            servers: dict[Kind, Server] = {}
            helpers = Helpers()
            for kind in group:
                if kind == "ours":
                    if any(map(self.plan.beside, methods)):
                        probe, server = stack.enter_context(self._sidecar())
                        helpers = Helpers(probe, server)
                    replay = any(method.replay for method in methods)
                    servers[kind] = stack.enter_context(
                        ours(self.setup, self.logs, helpers.sidecar, predictor=self.predictor, allow_replay=replay)
                    )
                else:
                    speculation = dict(DRAFTERS[kind]) if kind in DRAFTERS else None
                    if speculation and speculation["method"] == "suffix" and self.plan.warm is None:
                        speculation["suffix_decoding_max_cached_requests"] = 0
                    servers[kind] = stack.enter_context(stock(self.setup, self.logs, kind, speculation))
            yield servers, helpers


def requests_of(
    data: Sequence[str], limit: int | None, folder: Path | None = None, *, shortest: bool = False
) -> list[Item]:
    """The requests of all data sets, `limit` of each, each dialogue once; where asked, the shortest prompts first.

    Raises:
        DataError: A name that is no data set, or a file that cannot be read.
    """
    read = [item for name in data for item in load_named(name, folder)]
    items = take(sorted(read, key=prompt_length) if shortest else read, limit)
    return list({fingerprint(item): item for item in reversed(items)}.values())[::-1]


def predictor_of(chosen: str, methods: Sequence[BenchMethod]) -> str:
    """The predictor's folder, or "lexical".

    Raises:
        UnknownMethod: A method needs a predictor that was not named, or two predictors would mix.
        PredictorError: There is none in that folder.
    """
    hints = {method.hint for method in methods}
    if {"span", "sidecar"} <= hints:
        msg = "Method 'span' would have the sidecar's hints too: measure it in a run without method 'ooospec'."
        raise UnknownMethod(msg)
    if "span" in hints and chosen == LEXICAL:
        msg = "Method 'span' needs `--predictor span` or a predictor's folder."
        raise UnknownMethod(msg)
    return chosen if chosen == LEXICAL else str(find(None if chosen == "span" else Path(chosen)))


def main(
    target: Annotated[str, typer.Option(help="Target model: name or folder.")],
    data: Annotated[list[str], typer.Option(help="'own', 'bfcl', 'bfcl:CATEGORY', a .jsonl file or folder.")],
    out: Annotated[Path, typer.Option(help="Result JSON; every answer stands beside it as .jsonl.")],
    data_folder: Annotated[Path | None, typer.Option(help="Where further sets lie as NAME.jsonl.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Methods; by default the profile's.")] = None,
    hints: Annotated[
        list[str] | None,
        typer.Option(help="In place of the sidecar's: gold, perfect, wrong, none, degraded:P; in any number."),
    ] = None,
    setting: Annotated[
        Setting,
        typer.Option(
            help="own: the sidecar as if on a device of its own; shared: beside the target; both: in one run."
        ),
    ] = "shared",
    tool_choice: Annotated[str, typer.Option(help="auto or required.")] = "auto",
    profile: Annotated[str, typer.Option(help="quick or full.")] = "quick",
    limit: Annotated[int | None, typer.Option(help="Requests of each data set.")] = None,
    shortest: Annotated[bool, typer.Option(help="Take the requests with the shortest prompts.")] = False,
    max_tokens: Annotated[int, typer.Option(help="Most output tokens of a request.")] = 256,
    stream: Annotated[bool, typer.Option(help="Stream answers, which tells the time to the first token.")] = True,
    cached: Annotated[bool, typer.Option(help="Warm each prompt's KV first, for all methods alike.")] = True,
    warm: Annotated[
        list[str] | None, typer.Option(help="Other dialogues that fill every store first; by default stores are cold.")
    ] = None,
    warm_limit: Annotated[int, typer.Option(help="Dialogues of each such set.")] = 40,
    seed: Annotated[str, typer.Option(help="Of degraded hints.")] = "0",
    dtype: Annotated[str, typer.Option(help="vLLM's --dtype; by default the launcher's choice.")] = "",
    cores: Annotated[str, typer.Option(help="Cores of each target; '' leaves vLLM's choice.")] = "0-1",
    kv_gib: Annotated[int, typer.Option(help="KV cache of each target in GiB, on CPUs.")] = 1,
    sidecar_model: Annotated[str, typer.Option("--sidecar", help="Sidecar model.")] = "SmolLM2-135M-Instruct",
    adapter: Annotated[str | None, typer.Option(help="LoRA adapter of the sidecar, or none.")] = None,
    sidecar_cores: Annotated[str, typer.Option(help="Its cores; by default where the launcher puts it.")] = "",
    target_gpu: Annotated[str, typer.Option(help="CUDA_VISIBLE_DEVICES of each target, such as 0 or 0,1.")] = "",
    sidecar_gpu: Annotated[str, typer.Option(help="CUDA_VISIBLE_DEVICES of the sidecar.")] = "",
    target_arg: Annotated[list[str] | None, typer.Option(help="A further flag of vLLM for each target.")] = None,
    sidecar_arg: Annotated[list[str] | None, typer.Option(help="A further flag of vLLM for the sidecar.")] = None,
    predictor: Annotated[
        str, typer.Option(help="The server's own predictor: lexical, span or a folder; method span needs one.")
    ] = LEXICAL,
    block: Annotated[int, typer.Option(help="Requests a block, where memory does not hold all servers.")] = 24,
    logs: Annotated[Path, typer.Option(help="Folder of the servers' logs.")] = Path("out/logs"),
) -> None:
    """Measure methods in pairs, and write ratios of total times with their intervals.

    Run it again to go on where it was stopped.
    """
    try:
        if profile not in PROFILES:
            msg = f"Unknown profile {profile!r}: use one of {', '.join(PROFILES)}."
            raise DataError(msg)
        chosen = PROFILES[profile]
        names = with_settings(with_hints(method or list(chosen.methods), hints or []), setting)
        methods = [method_named(name) for name in names]
        items = requests_of(data, chosen.limit if limit is None else limit, data_folder, shortest=shortest)
        dialogues = requests_of(warm, warm_limit, data_folder) if warm else None
        plan = Plan(methods, tool_choice, max_tokens, stream, cached, dialogues, setting, seed)
        setup = Setup(target, dtype, cores, kv_gib, gpu=target_gpu, extra=tuple(target_arg or ()))
        helper = SidecarSetup(
            sidecar_model, adapter_for(sidecar_model, adapter), sidecar_cores, sidecar_gpu, tuple(sidecar_arg or ())
        )
        bench = Bench(setup, plan, helper, block, logs, predictor_of(predictor, methods))
        made = bench.groups()
        facts = facts_of(bench, made)
        raw = RawLog(out.with_suffix(".jsonl"), _options(bench, warm or []))
        raw.keep_items(items)
        codec, _ = codec_of(resolve(target))
    except (DataError, OtherRun, PredictorError, UnknownMethod, WeightsError, FileNotFoundError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    bench.run(items, raw, made, codec.decode)
    save(out, "bench", facts | {"rows": result_rows(target, setting, raw)})
    shown = run_data(json.loads(out.read_text(encoding="utf-8")), Run.read(raw.path), items, codec.decode)
    page = out.with_suffix(".html")
    page.write_text(render([shown]), encoding="utf-8")
    typer.echo(f"{out}, {raw.path} and {page}")


def result_rows(target: str, setting: str, raw: RawLog) -> list[dict[str, Any]]:
    """One row a data set and method: `target, dataset, method, hints, setting, n, speedup, ...`.

    A row's setting is "both" where a run has both and the method asks no sidecar.
    """
    rows = []
    for row in summarize(raw.rows):
        method = method_named(row["method"])
        named = {"dataset": row["dataset"], "method": method.row_name, "hints": method.hints}
        named["setting"] = setting_of(method, setting)
        rows.append({"target": target} | named | {key: row[key] for key in row if key not in named})
    return rows


def facts_of(bench: Bench, made: Sequence[Sequence[Kind]]) -> dict[str, Any]:
    """What holds for all rows of a result."""
    plan, setup = bench.plan, bench.setup
    in_turn = f"in turn, for want of memory: blocks of {bench.block} requests alternate between "
    return {
        "target": setup.model,
        "tool_choice": plan.tool_choice,
        "setting": plan.setting,
        "stores": "cold" if plan.warm is None else f"warm: {len(plan.warm)} other dialogues, and what was asked since",
        "dtype": setup.dtype_used,
        "cached": plan.cached,
        "stream": plan.stream,
        "max_tokens": plan.max_tokens,
        "cores": setup.cores,
        "sidecar": bench.helper.label if bench.waves else None,
        "predictor": Path(bench.predictor).name,
        "servers": "at once" if len(made) == 1 else in_turn + " and ".join("+".join(kinds) for kinds in made),
    }


def _options(bench: Bench, warm: Sequence[str]) -> dict[str, Any]:
    """What must be equal for a run to be the same run; requests and methods may be added to it."""
    plan, setup = bench.plan, bench.setup
    return {
        "model": setup.model,
        "tool_choice": plan.tool_choice,
        "max_tokens": plan.max_tokens,
        "stream": plan.stream,
        "cached": plan.cached,
        "dtype": setup.dtype_used,
        "cores": setup.cores,
        "warm": list(warm),
        "setting": plan.setting,
        "seed": plan.seed,
        "sidecar": [bench.helper.model, bench.helper.adapter, bench.helper.cores],
        "predictor": Path(bench.predictor).name,
        "rest_s": WATCH_S,
    }


if __name__ == "__main__":
    typer.run(main)
