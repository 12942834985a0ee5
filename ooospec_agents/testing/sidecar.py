"""A scripted sidecar: a completions server that answers a wave's questions from a table."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from ooospec_agents.testing.loopback import Answer, Break, LoopbackServer, error, models
from ooospec_agents.testing.script import Received

QUESTION_CHARS = 600
"""Only the end of a prompt, where its question stands, is looked up; in characters."""

Table = Mapping[str, str] | Callable[[str], str]
"""From a text that stands in a prompt's question to its completion, or a function of the whole prompt."""


class ScriptedSidecar(LoopbackServer):
    """A sidecar that answers from a table; use it as a context manager.

    Each prompt is answered by the entry whose text stands nearest to the prompt's end, or by `default`.

    Args:
        table: The answers.
        default: The completion of a prompt that no entry fits.
        probability: The probability reported of each token of an answer.
        delay_s: Wait before each answer, in seconds.
        status: HTTP status; anything but 200 answers an error.
        models: The models it knows (an adapter is one, too); others are answered 404. None: any.
        garbage: Answer with this text instead of JSON.
        break_connection: Close the connection instead of answering.
    """

    def __init__(
        self,
        table: Table | None = None,
        *,
        default: str = "",
        probability: float = 0.9,
        delay_s: float = 0.0,
        status: int = 200,
        models: tuple[str, ...] | None = None,
        garbage: str | None = None,
        break_connection: bool = False,
    ) -> None:
        super().__init__()
        self._table: Table = {} if table is None else table
        self._default = default
        self._probability = probability
        self._models = models
        self.misbehave(delay_s=delay_s, status=status, garbage=garbage, break_connection=break_connection)
        self._numbers = itertools.count()

    def misbehave(
        self,
        *,
        delay_s: float = 0.0,
        status: int = 200,
        garbage: str | None = None,
        break_connection: bool = False,
    ) -> None:
        """From now on answer so, and no longer as before; without arguments, answer well again."""
        self._delay_s = delay_s
        self._status = status
        self._garbage = garbage
        self._break = break_connection

    @property
    def waves(self) -> list[dict[str, Any]]:
        """Bodies of the completions asked for, in order."""
        return self.bodies("/v1/completions")

    @property
    def prompts(self) -> list[str]:
        """Every prompt received, in order."""
        return [prompt for wave in self.waves for prompt in _prompts(wave)]

    def respond(self, request: Received) -> Answer:
        """Answer one request."""
        match request.method, request.path:
            case "GET", "/health":
                return Answer(text="")
            case "GET", "/v1/models":
                return models(self._models or ("sidecar",))
            case "POST", "/v1/completions":
                return self._complete(request.body)
        return error(404, "Not Found")

    def _complete(self, body: Any) -> Answer:
        time.sleep(self._delay_s)
        if self._break:
            raise Break
        if self._status != 200:
            return error(self._status, "scripted failure")
        if self._garbage is not None:
            return Answer(text=self._garbage)
        model = body.get("model") if isinstance(body, dict) else None
        if self._models is not None and model not in self._models:
            return error(404, f"The model `{model}` does not exist.")
        choices = [self._choice(index, prompt) for index, prompt in enumerate(_prompts(body))]
        head = {"id": f"cmpl-{next(self._numbers)}", "object": "text_completion", "created": 1}
        return Answer(json={**head, "model": model, "choices": choices})

    def _choice(self, index: int, prompt: str) -> dict[str, Any]:
        text = self._answer(prompt)
        tokens = [text[start : start + 4] for start in range(0, len(text), 4)]
        choice = {"index": index, "text": text, "finish_reason": "stop"}
        return {**choice, "logprobs": _logprobs(tokens, self._probability)}

    def _answer(self, prompt: str) -> str:
        if callable(self._table):
            return self._table(prompt)
        question = prompt[-QUESTION_CHARS:]
        nearest = max(self._table, key=question.rfind, default="")
        return self._table[nearest] if nearest and nearest in question else self._default


def _prompts(body: Any) -> list[str]:
    prompt = body.get("prompt") if isinstance(body, dict) else None
    return [prompt] if isinstance(prompt, str) else list(prompt or [])


def _logprobs(tokens: list[str], probability: float) -> dict[str, Any]:
    value = math.log(probability)
    return {
        "tokens": tokens,
        "token_logprobs": [value] * len(tokens),
        "top_logprobs": [{token: value} for token in tokens],
        "text_offset": [4 * index for index in range(len(tokens))],
    }
