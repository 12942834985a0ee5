"""`docs/results.md` from the result files: every figure with the command that made it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

HEAD = """# Results

Written by `python -m ooospec_agents.bench.results` from the files in `docs/results/`; a test checks that they
match. Ratios are of total times with 95 % bootstrap intervals. "identical" is the share of outputs whose
token ids equal those of stock vLLM in the same run; in bfloat16, verifying several tokens at once may round
differently for any method.
"""
TRIED = "tried.md"
"""What was tried and what it brought, in prose."""


def render(folder: Path) -> str:
    """The whole page, from every `*.json` of the folder in name order, and from `tried.md`, where there is one."""
    parts = [HEAD]
    for file in sorted(folder.glob("*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        parts.append(_SECTIONS[result["kind"]](file.stem, result))
    tried = folder / TRIED
    if tried.exists():
        parts.append(tried.read_text(encoding="utf-8"))
    return "\n".join(parts)


def _paired(name: str, result: Mapping[str, Any]) -> str:
    title = f"Methods in pairs: {result['target']}, `{result['tool_choice']}`"
    note = (
        f"Prompts {'cached' if result['cached'] else 'not cached'}, "
        f"stores {'growing' if result['growing'] else 'cold'}, {result['dtype']}, "
        f"cores {result['cores']}. "
        "`ar` is stock vLLM; `perfect` (the plain output as the hint), `perfect-values` "
        "(its function and values only) and `ceiling` (its token ids) are limits, not methods."
    )
    rows = [
        [
            row["dataset"], row["method"], row["n"],
            _interval(row["speedup"], row["speedup_low"], row["speedup_high"]),
            f"{row['speedup_tokens']:.2f}", row["steps"], f"{row['acceptance_length']:.2f}",
            f"{row['identical']:.3f}", f"{row['in_text']:.2f}",
            f"{row['draft_ms_step']:.3f}" if "draft_ms_step" in row else "",
        ]
        for row in result["rows"]
    ]  # fmt: skip
    head = [
        "data",
        "method",
        "n",
        "speed-up",
        "tokens/s ratio",
        "steps",
        "tokens a step",
        "identical",
        "in text",
        "drafting ms/step",
    ]
    rivals = [
        [row["dataset"], f"{row['method']} over {key.removeprefix('over_')}", _interval(*row[key])]
        for row in result["rows"]
        for key in row
        if key.startswith("over_")
    ]
    between = "\n" + _table(["data", "ratio", "value"], rivals) if rivals else ""
    return _section(title, name, result, note, _table(head, rows) + between)


def _bench(name: str, result: Mapping[str, Any]) -> str:
    title = f"Benchmark: {result['target']}, `{result['tool_choice']}`, {_settings(result)}"
    alone = "; the sidecar's answers and delays were recorded while it ran alone, and replayed"
    beside = "; it ran beside the target for the rows `shared`" if result["setting"] == "both" else ""
    note = (
        f"Stores {result['stores']}; prompts {'cached' if result['cached'] else 'not cached'}; {result['dtype']}, "
        f"cores {result['cores'] or 'as vLLM chooses'}; servers {result['servers']}"
        f"{alone if result['setting'] != 'shared' and result['sidecar'] else ''}{beside}. "
        f"Sidecar: {result['sidecar'] or 'none'}. "
        "`ar` is stock vLLM, `off` our server without drafts. `perfect` (the plain output as the hint), "
        "`perfect-values` (its function and values only) and `ceiling` (its token ids replayed) are limits, "
        "not methods."
    )
    shown = [
        [
            row["dataset"], _method(row, result), row["n"],
            _interval(row["speedup"], row["speedup_low"], row["speedup_high"]), f"{row['speedup_tokens']:.2f}",
            row["steps"], f"{row['acceptance_length']:.2f}", f"{row['identical']:.3f}", f"{row['in_text']:.2f}",
            _shown(row, "first_s", "{:.2f}"), _shown(row, "hint_first", "{:.2f}"),
            _shown(row, "hint_before_end", "{:.2f}"), _shown(row, "hint_used", "{:.2f}"),
            _shown(row, "hint_bytes", "{:.0f}"), _shown(row, "wave_ms", "{:.0f}"), _shown(row, "cpu_s", "{:.2f}"),
            _shown(row, "sidecar_cpu_s", "{:.2f}"), _shown(row, "as_reference", "{:.2f}"),
            _shown(row, "draft_ms_step", "{:.2f}"),
        ]
        for row in result["rows"]
    ]  # fmt: skip
    head = (
        "data", "method (hints)", "n", "speed-up", "tokens/s ratio", "steps", "tokens a step", "identical", "in text",
        "first token s", "hint at first boundary", "before the end", "used", "hint bytes", "wave ms", "target CPU s",
        "sidecar CPU s", "calls as reference", "drafting ms/step",
    )  # fmt: skip
    rivals = [
        [row["dataset"], f"{_method(row, result)} over {key.removeprefix('over_')}", _interval(*row[key])]
        for row in result["rows"]
        for key in row
        if key.startswith("over_")
    ]
    between = "\n" + _table(["data", "ratio", "value"], rivals) if rivals else ""
    return _section(title, name, result, note, _table(head, shown) + between)


def _settings(result: Mapping[str, Any]) -> str:
    return "settings `own` and `shared`" if result["setting"] == "both" else f"setting `{result['setting']}`"


def _method(row: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """A row's method, where its hints come from, and its setting where the run has both."""
    setting = row["setting"] if result["setting"] == "both" and row["setting"] != "both" else ""
    more = ", ".join(filter(None, (row["hints"], setting)))
    return f"{row['method']} ({more})" if more else str(row["method"])


def _shown(row: Mapping[str, Any], key: str, form: str) -> str:
    return form.format(row[key]) if row.get(key) is not None else ""


def _identity(name: str, result: Mapping[str, Any]) -> str:
    scope = f"{result['items']} requests ({result['cross']})"
    title = f"Unchanged output: {result['target']}, {result['dtype']}, {scope}"
    note = (
        f"{result['identical']} of {result['n']} outputs have stock vLLM's token ids; "
        f"{len(result['ties'])} differ where the "
        f"plain run's two tokens were within 1e-4; {len(result['faults'])} other differences. "
        f"{result['called']} were calls."
    )
    if any(row["same_message"] < row["identical"] for row in result["by_hint"].values()):
        note += (
            " The message is compared with one that was not streamed; of a call that `max_tokens` cut, vLLM itself "
            "gives another finish reason in a stream."
        )
    rows = [
        [hint, r["n"], r["identical"], r["same_message"], r["tokens"], r["steps"], r["hint_used"]]
        for hint, r in result["by_hint"].items()
    ]
    table = _table(["hint", "n", "same ids", "same message", "tokens", "steps", "hint used"], rows)
    listed = [
        [kind, e["dataset"], e["item"], e["hint"], e["tool_choice"], e["stream"], e["at"], e["gap"]]
        for kind, entries in (("tie", result["ties"]), ("difference", result["faults"]))
        for e in entries
    ]
    if listed:
        table += "\n" + _table(
            ["", "data", "request", "hint", "tool choice", "stream", "at token", "logit gap"], listed
        )
    return _section(title, name, result, note, table)


def _overhead(name: str, result: Mapping[str, Any]) -> str:
    row = [
        result["what"],
        result["pairs"],
        _interval(result["value"], result["low"], result["high"]),
        f"{result['same']:.3f}",
    ]
    title = f"Cost: {result['target']}, {result['dtype']}"
    return _section(title, name, result, "", _table(["what", "pairs", "ratio", "identical"], [row]))


def _demo(name: str, result: Mapping[str, Any]) -> str:
    rows = [
        [
            row["task"], "yes" if row["derived"] else "no", f"{row['plain_s']:.2f}", f"{row['ours_s']:.2f}",
            f"{row['plain_s'] / row['ours_s']:.2f}", row["identical"], row["reproducible"],
            row["steps_plain"], row["steps_ours"],
        ]
        for row in result["tasks"]
    ]  # fmt: skip
    head = [
        "task",
        "value not in the text",
        "plain s",
        "ours s",
        "ratio",
        "identical",
        "plain repeats",
        "steps plain",
        "steps ours",
    ]
    tasks = result["tasks"]
    used, turns = sum(row["hints_used"] for row in tasks), sum(row["turns"] for row in tasks)
    order = "turn by turn" if result["together"] else "one server after the other, for want of memory"
    note = (
        f"{result['target']} ({result['dtype']}) with sidecar {result['sidecar']} on the same cores, {order}: "
        f"**{result['speedup']:.2f}x** in total. A hint of the sidecar was used in {used} of {turns} turns."
    )
    return _section("Demo: a LangGraph agent", name, result, note, _table(head, rows))


def _agents(name: str, result: Mapping[str, Any]) -> str:
    parts = ("wall_s", "target_s", "tools_s", "rest_s")
    rows = [[side, *(f"{total[part]:.2f}" for part in parts)] for side, total in result["totals"].items()]
    same = sum(row["identical"] for row in result["rows"])
    note = (
        f"{len(result['rows'])} whole tasks with executed tools, {result['servers']}: "
        f"**{_interval(result['speedup'], result['speedup_low'], result['speedup_high'])}** in total wall time; "
        f"{same} with the same tokens. Sidecar: {result['sidecar'] or 'none'}; {result['dtype']}."
    )
    table = _table(["side", "wall s", "target s", "tools s", "rest s"], rows)
    return _section(f"Agent runs: {result['target']}", name, result, note, table)


def _step_price(name: str, result: Mapping[str, Any]) -> str:
    counts = list(result["ms"])
    rows = [["ms", *(f"{result['ms'][count]:.2f}" for count in counts)]]
    rows.append(["relative", *(f"{result['relative'][count]:.2f}" for count in counts)])
    brings = "; ".join(
        f"{run}: " + ", ".join(f"{method} {value:.2f}x" for method, value in methods.items())
        for run, methods in result["brings"].items()
    )
    note = (
        f"A forward pass of random weights behind {result['context']} cached tokens, by its own tokens. "
        f"Decoding alone, at these prices, of the steps recorded in {brings or 'no run'}."
    )
    title = f"Price of a step: shape {result['shape']} on {result['device']}"
    return _section(title, name, result, note, _table(["tokens", *counts], rows))


def _sampling(name: str, result: Mapping[str, Any]) -> str:
    return _section(f"Sampled requests: {result['target']}", name, result, result["what"], "")


def _client_cost(name: str, result: Mapping[str, Any]) -> str:
    note = (
        "Medians in milliseconds, with the quartiles of the differences. Imports are compared with `langchain_openai`, "
        "requests, by turns, with those of the SDK's own client to the same scripted target."
    )
    head = ["what", "pairs", "stock", "ours", "added", "quartiles"]
    rows = [
        [
            row["what"], row["pairs"], f"{row['stock_ms']:.1f}", f"{row['ours_ms']:.1f}", f"{row['added_ms']:.2f}",
            " to ".join(f"{value:.2f}" for value in row["added_ms_quartiles"]),
        ]
        for row in result["rows"]
    ]  # fmt: skip
    return _section("What clients cost where they bring nothing", name, result, note, _table(head, rows))


def _load(name: str, result: Mapping[str, Any]) -> str:
    stock = result.get("plain", "stock") == "stock"
    other = "stock vLLM's" if stock else "the same server's while it drafts nothing (`off`; memory does not hold two)"
    note = (
        f"Tokens a second of ours (`{result['drafting']}`) over {other}, the same requests sent to each, all at once; "
        f"`{result['tool_choice']}`, {result['dtype']}, cores {result['cores']}; prompts cached, stores cold."
    )
    plain = "stock" if stock else "off"
    head = [
        "at once",
        "rounds",
        "ratio",
        f"{plain} tokens/s",
        "ours tokens/s",
        f"preempted {plain}",
        "ours",
        "identical",
    ]
    rows = [
        [
            row["at_once"], row["rounds"], _interval(row["value"], row["low"], row["high"]),
            f"{row['plain_tokens_s']:.1f}", f"{row['ours_tokens_s']:.1f}", row["plain_preempted"],
            row["ours_preempted"], f"{row['identical']:.3f}",
        ]
        for row in result["rows"]
    ]  # fmt: skip
    return _section(f"Several requests at once: {result['target']}", name, result, note, _table(head, rows))


def _drafting_speed(name: str, result: Mapping[str, Any]) -> str:
    note = (
        f"Commit and draft of one step, {result['tools']} tools, after {result['committed']} tokens of output, alone "
        f"on a core, median of {result['repeats']} times; `cold`: memory as large as the processor's caches is read "
        "before each step."
    )
    head = ["hint", "caches", "steps", "mean ms", "median ms", "99th percentile ms"]
    rows = [
        [
            "yes" if row["hinted"] else "no", "cold" if row["cold"] else "hot", row["steps"],
            *(f"{row[key]:.3f}" for key in ("mean_ms", "p50_ms", "p99_ms")),
        ]
        for row in result["rows"]
    ]  # fmt: skip
    return _section(f"The drafter alone: tokenizer of {result['target']}", name, result, note, _table(head, rows))


def _soak(name: str, result: Mapping[str, Any]) -> str:
    counts = result["counts"]
    kinds = ", ".join(f"{counts[key]} {key.removeprefix('kind ')}" for key in counts if key.startswith("kind "))
    wrong = ("errors", "different", "hints lost", "hints swapped", "reports missing")
    note = (
        f"{result['requests']:,} requests in {result['minutes']:.0f} minutes, 1 to {result['at_once']} at a time "
        f"({kinds}): " + ", ".join(f"{counts.get(key, 0)} {key}" for key in wrong) + ". "
        f"{counts.get('identical', 0):,} outputs were compared with undrafted ones and equal; "
        f"{counts.get('hints posted', 0):,} hints were posted, {counts.get('posted arrived', 0):,} found theirs; "
        f"{counts.get('unique values seen', 0):,} more requests showed the value that only their hint had."
    )
    rows = [
        [what, result[f"{key}_start{unit}"], result[f"{key}_end{unit}"]]
        for what, key, unit in (("memory, MB", "rss", "_mb"), ("open files", "files", ""), ("threads", "threads", ""))
        if f"{key}_start{unit}" in result
    ]
    title = f"Soak: {result.get('target') or 'scripted engine'}"
    return _section(title, name, result, note, _table(["of the server", "start", "end"], rows) if rows else "")


_SECTIONS = {
    "drafting_speed": _drafting_speed,
    "load": _load,
    "soak": _soak,
    "client_cost": _client_cost,
    "bench": _bench,
    "paired": _paired,
    "identity": _identity,
    "overhead": _overhead,
    "demo": _demo,
    "agents": _agents,
    "step_price": _step_price,
    "sampling": _sampling,
}


def _section(title: str, name: str, result: Mapping[str, Any], note: str, table: str) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    parts = [f"## {title}", note, table.strip(), f"`{result['command']}`", f"File `{name}.json`; {machine}."]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
"""In a page, what stands between these is written from the result files."""


def with_figures(text: str, folder: Path) -> str:
    """A page with the benchmarks' headline between its marks: all data together, by target and setting."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        return text
    return f"{head}{BEGIN}\n{headline(folder)}\n{END}{tail}"


def headline(folder: Path) -> str:
    """The table of the README: speed-up over stock vLLM, each request counted, by target, setting and method."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for file in sorted(folder.glob("*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        rows = result["rows"] if result["kind"] == "bench" else []
        if not any(row["method"] in ("lexical", "ooospec") for row in rows):
            continue  # of others alone: which of their settings is best, say
        whole = "all" if any(row["dataset"] == "all" for row in rows) else rows[0]["dataset"]
        stores = str(result["stores"]).partition(":")[0]
        for setting in ("own", "shared") if result["setting"] == "both" else (result["setting"],):
            key = (Path(result["target"]).name, f"`{result['tool_choice']}`", setting, stores)
            for row in rows:
                mine = row["setting"] in (setting, "both")
                if mine and row["dataset"] == whole and row["hints"] in ("", "sidecar"):
                    said = _interval(row["speedup"], row["speedup_low"], row["speedup_high"])
                    found.setdefault(key, {"n": str(row["n"])})[row["method"]] = said
    methods = [m for m in ("suffix", "toolspec", "lexical", "ooospec") if any(m in row for row in found.values())]
    lines = [[*key, row["n"], *(row.get(method, "") for method in methods)] for key, row in found.items()]
    return _table(["target", "tool choice", "setting", "stores", "n", *methods], lines).strip() if lines else ""


app = typer.Typer(add_completion=False)


@app.command()
def main(
    folder: Annotated[Path, typer.Option(help="Folder of result files.")] = Path("docs/results"),
    page: Annotated[Path, typer.Option(help="Page to write.")] = Path("docs/results.md"),
    figures: Annotated[list[Path], typer.Option(help="Pages with marks for the headline.")] = [  # noqa: B006
        Path("README.md")
    ],
) -> None:
    """Write the page, and the figures between the marks of the others."""
    page.write_text(render(folder), encoding="utf-8")
    for other in figures:
        other.write_text(with_figures(other.read_text(encoding="utf-8"), folder), encoding="utf-8")


if __name__ == "__main__":
    app()
