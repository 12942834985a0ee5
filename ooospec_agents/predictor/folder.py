"""Where a trained span predictor lies, and whether this machine can run it. Imports nothing heavy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from ooospec_agents.predictor.worker import Predictor

SHIPPED = Path(__file__).parent / "weights"
"""The predictor that comes with the package, if one does."""
FILES = ("span.safetensors", "span.json", "tokenizer.json")
NEEDS = ("torch", "safetensors", "tokenizers")


class PredictorError(RuntimeError):
    """A span predictor cannot be used here. The message says why, and what to do."""


def find(folder: Path | None = None) -> Path:
    """The folder of the predictor to use.

    Args:
        folder: A folder that the user chose; None: the shipped one.

    Raises:
        PredictorError: There is none, or what runs it is not installed.
    """
    chosen = folder or SHIPPED
    if missing := [name for name in FILES if not (chosen / name).is_file()]:
        msg = f"{str(chosen)!r} holds no span predictor ({', '.join(missing)} missing): train one with "
        raise PredictorError(msg + "`ooospec train --predictor span`, or use `--predictor lexical`.")
    if absent := [name for name in NEEDS if importlib.util.find_spec(name) is None]:
        msg = f"The span predictor needs {', '.join(absent)}: install 'ooospec-agents[vllm]' or, without a GPU, "
        raise PredictorError(msg + "'...[cpu]', or use `--predictor lexical`.")
    return chosen


def loader(folder: Path) -> Callable[[], Predictor]:
    """What loads the folder's predictor, on one thread, in the thread that calls it."""

    def load() -> Predictor:
        import torch

        from ooospec_agents.predictor.predictor import SpanPredictor

        torch.set_num_threads(1)
        return SpanPredictor.from_folder(folder)

    return load
