"""`ooospec report RESULT...`: one self-contained HTML page of one or several runs, with every request to be opened.

What a result file and the raw rows beside it say is put into the page as JSON; the page draws it by itself, without
any server or library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ooospec_agents.bench.data import DataError, Item
from ooospec_agents.bench.explain import Run
from ooospec_agents.bench.hints import calls_of
from ooospec_agents.bench.ledger import Decode
from ooospec_agents.bench.redraft import codec_of
from ooospec_agents.bench.requests import Answer
from ooospec_agents.bench.summary import NOT_METHODS, summarize
from ooospec_agents.bench.timeline import COLOURS, OTHER
from ooospec_agents.weights import WeightsError, resolve

PAGE = Path(__file__).parent / "report_page.html"
MARK = "/*DATA*/"
FACTS = ("target", "tool_choice", "setting", "stores", "dtype", "cached", "stream", "cores", "sidecar", "servers")


def run_data(result: Mapping[str, Any], run: Run, items: Sequence[Item], decode: Decode) -> dict[str, Any]:
    """What the page shows of one run.

    Args:
        result: The result file; an empty one where there is only a raw file.
        run: The raw rows.
        items: The requests, as far as they are known.
        decode: The target's tokenizer.
    """
    rows = [row for row in run.rows if row.get("method") and row["method"] not in NOT_METHODS]
    asked = {(item.dataset, item.id): item for item in items}
    requests: dict[tuple[str, str], dict[str, Any]] = {}
    points: list[list[float]] = []
    for row in rows:
        key = row["dataset"], row["item"]
        item = asked.get(key)
        if key not in requests:
            messages = item.messages if item is not None else []
            gold = item.gold if item is not None else []
            requests[key] = {"dataset": key[0], "id": key[1], "messages": messages, "gold": gold, "answers": {}}
        answer = Answer(**row["answer"])
        requests[key]["answers"][row["method"]] = _answer(row, answer, decode)
        if row.get("hint") and row["hint"].get("source") != "bench":
            points += confidences(row["hint"], answer)
    return {
        "facts": {name: result[name] for name in FACTS if result.get(name) is not None} or dict(run.options),
        "command": result.get("command", ""),
        "machine": result.get("machine", {}),
        "rows": result.get("rows") or summarize(rows),
        "requests": list(requests.values()),
        "confidence": calibration(points),
    }


def confidences(hint: Mapping[str, Any], answer: Answer) -> list[list[float]]:
    """`[confidence, right]` of each name and value of a hint, judged by the calls that came."""
    said, came = hint.get("calls") or [], calls_of(answer)
    points = []
    for index, call in enumerate(said):
        name, arguments = came[index] if index < len(came) else ("", {})
        points.append([call.get("confidence", 0.5), float(call["name"] == name)])
        if call["name"] != name:
            continue
        for slot, value in (call.get("slots") or {}).items():
            right = slot not in arguments if value.get("absent") else arguments.get(slot) == value.get("value")
            points.append([value.get("confidence", 0.5), float(right)])
    return points


def calibration(points: Sequence[Sequence[float]], bins: int = 10) -> list[dict[str, float]]:
    """Mean confidence and share right of each tenth of the scale, with a 95 % interval (Wilson's)."""
    found = []
    for number in range(bins):
        mine = [point for point in points if min(int(point[0] * bins), bins - 1) == number]
        if mine:
            n, share = len(mine), sum(point[1] for point in mine) / len(mine)
            middle, spread = (share + 1.92 / n) / (1 + 3.84 / n), 1.96 / (1 + 3.84 / n)
            half = spread * (share * (1 - share) / n + 0.96 / n**2) ** 0.5
            mean = sum(point[0] for point in mine) / n
            found.append({"confidence": mean, "right": share, "low": middle - half, "high": middle + half, "n": n})
    return found


def _answer(row: Mapping[str, Any], answer: Answer, decode: Decode) -> dict[str, Any]:
    report = answer.report or {}
    hint = report.get("hint") or {}
    sources = list(report.get("token_sources") or [])[: len(answer.token_ids)]
    return {
        "tokens": texts(answer.token_ids, decode),
        "sources": sources + ["target"] * (len(answer.token_ids) - len(sources)),
        "steps": _steps(answer),
        "count": answer.steps,
        "wall_ms": answer.wall_s * 1e3,
        "first_ms": None if answer.first_s is None else answer.first_s * 1e3,
        "calls": answer.calls,
        "content": answer.content,
        "finish": answer.finish,
        "hint": row.get("hint"),
        "hint_ms": hint.get("after_ms") if hint.get("arrived") else None,
        "wave_ms": row.get("wave_ms"),
    }


def _steps(answer: Answer) -> list[list[float]]:
    """`[end in ms since the request, tokens so far, drafted, accepted]` of each step, as far as it is known."""
    timeline = (answer.report or {}).get("timeline") or []
    if timeline:
        # A drafter's clock begins with its row, which is when the first token comes.
        begin = (
            answer.wall_s * 1e3 - timeline[-1][0] if answer.first_s is None else answer.first_s * 1e3 - timeline[0][0]
        )
        return [[begin + at, *counts] for at, *counts in timeline]
    total, steps = 0, []
    for at, count in answer.arrivals:
        total += count
        steps.append([at * 1e3, total, 0, count - 1])
    return steps


def texts(ids: Sequence[int], decode: Decode) -> list[str]:
    """The text of each token; a character of several tokens stands with its last."""
    out, done = [], ""
    for end in range(1, len(ids) + 1):
        text = decode(ids[:end])
        whole = text if not text.endswith("\ufffd") or end == len(ids) else done
        out.append(whole[len(done) :])
        done = whole
    return out


def render(runs: Sequence[Mapping[str, Any]], title: str = "ooospec benchmark") -> str:
    """The page."""
    data = json.dumps({"title": title, "colours": COLOURS, "other": OTHER, "runs": list(runs)}, ensure_ascii=False)
    return PAGE.read_text(encoding="utf-8").replace(MARK, data.replace("</", "<\\/"))


def main(
    results: Annotated[list[Path], typer.Argument(help="Result .json files, each with its raw .jsonl beside it.")],
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("out/report.html"),
    data: Annotated[list[Path] | None, typer.Option(help="Requests that a raw file does not hold itself.")] = None,
) -> None:
    """Write the report of one or several runs."""
    runs = []
    try:
        for path in results:
            raw = Run.read(path.with_suffix(".jsonl"))
            result = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else {}
            codec, _ = codec_of(resolve(str(raw.options.get("model", ""))))
            runs.append(run_data(result, raw, raw.items(data or []), codec.decode))
    except (DataError, WeightsError, OSError, ValueError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render(runs), encoding="utf-8")
    typer.echo(out)


if __name__ == "__main__":
    typer.run(main)
