"""A picture of one request: target steps and wave on one time axis, the call's tokens by who drafted them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLOURS = {
    "target": "#9aa0a6",
    "schema": "#4c78a8",
    "hint": "#e4572e",
    "copy": "#54a24b",
    "history": "#b279a2",
    "lexical": "#eeca3b",
    "dialect": "#72b7b2",
}
OTHER = "#ff9da6"
LINE_CHARS = 96


@dataclass(frozen=True)
class Picture:
    """What is drawn.

    Attributes:
        title: The task.
        tokens: Text of each output token.
        sources: Who drafted each token ("target": nobody), as long as `tokens`.
        steps: `[ms, committed, drafted, accepted]` at the end of each step.
        total_ms: The whole request.
        plain_ms: The same request on stock vLLM.
        plain_steps: Its steps there.
        hint_ms: When the drafter read the hint, or None.
    """

    title: str
    tokens: Sequence[str]
    sources: Sequence[str]
    steps: Sequence[Sequence[float]]
    total_ms: float
    plain_ms: float
    plain_steps: int
    hint_ms: float | None

    @classmethod
    def of_report(
        cls,
        title: str,
        tokens: Sequence[str],
        report: dict[str, Any],
        total_s: float,
        plain_s: float,
        plain_steps: int,
    ) -> Picture:
        """Read a report; tokens past the reported ones count as the target's."""
        sources = list(report["token_sources"][: len(tokens)])
        sources += ["target"] * (len(tokens) - len(sources))
        return cls(
            title,
            tokens,
            sources,
            report["timeline"],
            total_s * 1e3,
            plain_s * 1e3,
            plain_steps,
            report["hint"]["after_ms"],
        )


def lay_out(tokens: Sequence[str], width: int = LINE_CHARS) -> list[tuple[int, int, str, int]]:
    """Pieces `(row, column, text, token index)` of a text wrapped at `width` and at its own line ends."""
    pieces = []
    row = column = 0
    for index, token in enumerate(tokens):
        for number, part in enumerate(token.replace("\t", "  ").split("\n")):
            if number:
                row, column = row + 1, 0
            while part:
                if column >= width:
                    row, column = row + 1, 0
                piece, part = part[: width - column], part[width - column :]
                pieces.append((row, column, piece, index))
                column += len(piece)
    return pieces


def draw(picture: Picture, path: Path) -> None:
    """Write the picture as PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    pieces = lay_out(picture.tokens)
    rows = max((piece[0] for piece in pieces), default=0) + 1
    figure, (time_axis, text_axis) = plt.subplots(
        2, 1, figsize=(13, 3.6 + 0.24 * rows), height_ratios=[3.0, 0.24 * rows + 0.5], layout="constrained"
    )
    plain_step = picture.plain_ms / max(picture.plain_steps, 1)
    for number in range(picture.plain_steps):
        time_axis.add_patch(Rectangle((number * plain_step, 2.1), plain_step * 0.9, 0.7, color="#c9ccd1"))
    end = max(picture.plain_ms, picture.total_ms) * 1.02
    begin = 0.0
    for at, _, _, accepted in picture.steps:
        colour = "#3c6e9e" if accepted else "#5f6368"
        time_axis.add_patch(
            Rectangle((begin, 1.1), at - begin, 0.7, facecolor=colour, edgecolor="white", linewidth=0.8)
        )
        if accepted and at - begin > 0.015 * end:
            middle = (begin + at) / 2
            time_axis.text(middle, 1.45, f"+{int(accepted)}", ha="center", va="center", color="white", fontsize=7)
        begin = at
    if picture.hint_ms is not None:
        time_axis.add_patch(Rectangle((0, 0.1), picture.hint_ms, 0.7, color=COLOURS["hint"]))
        time_axis.axvline(picture.hint_ms, color=COLOURS["hint"], linestyle="--", linewidth=1)
        time_axis.annotate(
            f"hint read at {picture.hint_ms:.0f} ms", (picture.hint_ms, 0.45), xytext=(6, 0),
            textcoords="offset points",
            va="center", fontsize=9, color=COLOURS["hint"],
        )  # fmt: skip
    time_axis.set_xlim(0, end)
    time_axis.set_ylim(0, 3)
    time_axis.set_yticks([0.45, 1.45, 2.45], ["wave", "target, ours", "target, plain"])
    time_axis.set_xlabel("ms since the request")
    time_axis.set_title(
        f"{picture.title}: {len(picture.tokens)} tokens, "
        f"{picture.plain_steps} steps and {picture.plain_ms / 1e3:.2f} s plain, "
        f"{len(picture.steps)} steps and {picture.total_ms / 1e3:.2f} s with drafts",
        fontsize=11,
    )
    time_axis.spines[["top", "right", "left"]].set_visible(False)
    text_axis.set_xlim(0, LINE_CHARS)
    text_axis.set_ylim(rows, 0)
    text_axis.axis("off")
    for row, column, text, index in pieces:
        colour = COLOURS.get(picture.sources[index], OTHER)
        text_axis.add_patch(Rectangle((column, row + 0.08), len(text), 0.84, color=colour, alpha=0.45, linewidth=0))
        for offset, character in enumerate(text):
            text_axis.text(
                column + offset + 0.5, row + 0.5, character.replace("$", r"\$"), ha="center", va="center",
                family="monospace", fontsize=9,
            )  # fmt: skip
    seen = list(dict.fromkeys(picture.sources))
    handles = [Patch(color=COLOURS.get(source, OTHER), alpha=0.45, label=source) for source in seen]
    text_axis.legend(
        handles=handles,
        title="drafted by",
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(seen),
        fontsize=9,
        frameon=False,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
