"""Are sampled calls drawn from the target's own distribution, also beside greedy requests in one batch?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.requests import ask, chat_body, with_xargs
from ooospec_agents.bench.servers import Server
from ooospec_agents.bench.stats import two_sample_p
from ooospec_agents.hint import Hint

COLOURS = ("red", "green", "blue")
SIZES = ("small", "large")
PAINT = Item(
    id="paint",
    dataset="sampling",
    messages=[{"role": "user", "content": "Order one paint pot of any colour and any size. Surprise me."}],
    tools=[
        {
            "type": "function",
            "function": {
                "name": "order_paint",
                "description": "Order a pot of paint.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "colour": {"type": "string", "enum": list(COLOURS)},
                        "size": {"type": "string", "enum": list(SIZES)},
                    },
                    "required": ["colour", "size"],
                    "additionalProperties": False,
                },
            },
        }
    ],
)
"""A request whose call begins alike each time; where it differs most, a few hundred draws tell two
distributions apart."""
MAX_TOKENS = 20
"""Enough to reach the place where the draws part."""


@dataclass(frozen=True)
class Sample:
    """Token ids of sampled requests, and of the greedy ones that ran in the same batches."""

    sampled: list[list[int]]
    greedy: list[list[int]]
    drafted: int


def draw(client: httpx.Client, server: Server, n: int, xargs: dict[str, Any], greedy_every: int = 4) -> Sample:
    """Send `n` sampled requests, eight at a time, every `greedy_every`-th followed by a greedy one.

    Args:
        client: For all requests.
        server: Who answers.
        n: Sampled requests.
        xargs: Their `vllm_xargs`; empty for stock vLLM.
        greedy_every: 0 for none.
    """
    greedy_body = with_xargs(chat_body(server.model, PAINT, tool_choice="required", max_tokens=MAX_TOKENS), xargs)
    sampled_body = greedy_body | {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
    work = []
    for number in range(n):
        work.append(sampled_body)
        if greedy_every and number % greedy_every == 0:
            work.append(greedy_body)
    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = list(pool.map(lambda body: ask(client, server.url, body), work))
    pairs = list(zip(work, answers, strict=True))
    return Sample(
        sampled=[answer.token_ids for body, answer in pairs if body is sampled_body],
        greedy=[answer.token_ids for body, answer in pairs if body is greedy_body],
        drafted=sum(sum(((answer.report or {}).get("drafted") or {}).values()) for answer in answers),
    )


def hinted_xargs() -> dict[str, Any]:
    """Drafts that reach beyond the place where the draws part: a hint for one of the six calls."""
    hint = Hint.of_call("order_paint", {"colour": "red", "size": "small"}, 0.99, "bench")
    return {"ooospec": "ooospec", "ooospec_hint": hint.to_json(), "ooospec_report": 1}


def parting(sample: Sample) -> int:
    """Index at which the sampled outputs differ most: where the most tokens are common ones."""
    places = list(zip(*sample.sampled, strict=False))
    return max(range(len(places)), key=lambda at: len(common(list(map(str, places[at])))), default=0)


def common(drawn: Sequence[str]) -> list[str]:
    """Outcomes that make up a twentieth of the draws or more."""
    return [name for name, count in Counter(drawn).items() if count * 20 >= len(drawn)]


def outcomes(sample: Sample, at: int) -> list[str]:
    """What stands at a place in each sampled output."""
    return [str(ids[at]) if len(ids) > at else "ended" for ids in sample.sampled]


def p_value(plain: Sample, own: Sample) -> float:
    """Probability of a difference at least this big if both came from one distribution."""
    at = parting(plain)
    return two_sample_p(outcomes(plain, at), outcomes(own, at))


def greedy_unchanged(plain: Sequence[list[int]], own: Sequence[list[int]]) -> float:
    """Share of our greedy outputs that are among the plain ones (batching alone may round in two ways)."""
    known = {tuple(ids) for ids in plain}
    return sum(tuple(ids) in known for ids in own) / max(len(own), 1)
