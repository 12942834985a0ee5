"""The loss of examples: which function, what becomes of each slot, where its spans are."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ooospec_agents.predictor.encoder import Asked, Encoder, interact
from ooospec_agents.predictor.labels import Label
from ooospec_agents.training.spans.examples import SpanExample

MAX_PLACES = 8
"""Places of one value that count as right, at most."""
CLASS_WEIGHTS = (0.6, 1.0, 0.6)
"""Of what becomes of a slot: absent, a span, something else."""
PARTS = ("function", "outcome", "span")


class Reader:
    """The lower layers' states, which training leaves as they are; those of texts are kept.

    Args:
        encoder: Its lower layers are used as they are.
        most: Texts kept.
    """

    def __init__(self, encoder: Encoder, most: int = 20_000) -> None:
        self._encoder, self._most = encoder, most
        self._kept: dict[tuple[int, ...], Tensor] = {}

    def __call__(self, examples: Sequence[SpanExample]) -> list[Asked]:
        """The examples, ready for the upper layers."""
        new = list(dict.fromkeys(text for one in examples for text in one.texts if text not in self._kept))
        if len(self._kept) + len(new) > self._most:
            self._kept.clear()
            new = list(dict.fromkeys(text for one in examples for text in one.texts))
        talks = [one.conversation for one in examples]
        with torch.no_grad():
            states = self._encoder.read([*talks, *new])
        self._kept |= zip(new, (one.clone() for one in states[len(talks) :]), strict=True)
        return [
            Asked(talk, [self._kept[text] for text in one.texts]) for one, talk in zip(examples, states, strict=False)
        ]


def losses(encoder: Encoder, examples: Sequence[SpanExample], asked: Sequence[Asked]) -> dict[str, Tensor]:
    """Sums over the examples by `PARTS`; "total", their mean over slots and choices; "count", the number of those."""
    zero = torch.zeros(())
    parts = dict.fromkeys(PARTS, zero)
    count = 0
    for example, one, (talk, queries) in zip(examples, asked, interact(encoder, asked), strict=True):
        slots = len(example.slots)
        if example.chosen is not None:
            logits = choice_logits(encoder, talk, queries[slots:])
            parts["function"] = parts["function"] - logits.log_softmax(0)[example.chosen]
            count += 1
        if not slots:
            continue
        count += slots
        kinds = torch.tensor([label.kind for label in example.slots])
        logits = encoder.outcome(queries[:slots].flatten(1))
        weights = torch.tensor(CLASS_WEIGHTS)
        parts["outcome"] = parts["outcome"] + functional.cross_entropy(logits, kinds, weights, reduction="sum")
        for index, label in enumerate(example.slots):
            if label.parts:
                parts["span"] = (
                    parts["span"]
                    - span_logs(
                        encoder, talk, one.memories[index], queries[index], label, torch.tensor(example.near[index])
                    ).mean()
                )
    total = sum(parts.values(), zero) / max(count, 1)
    return {**parts, "total": total, "count": zero + count}


def span_logs(encoder: Encoder, talk: Tensor, memory: Tensor, queries: Tensor, label: Label, near: Tensor) -> Tensor:
    """Logarithms of the probability that a right span is found, one for each part of the value, [parts]."""
    starts = encoder.starts(queries[0], encoder.offers(0, talk, memory), near).log_softmax(0)
    offers, states = encoder.offers(1, talk, memory), torch.cat([talk, memory])
    logs = []
    for places in label.parts:
        first = torch.tensor([place[0] for place in places[:MAX_PLACES]])
        last = torch.tensor([place[1] for place in places[:MAX_PLACES]])
        ends = encoder.ends(queries[1], states[first], first >= len(talk), offers).log_softmax(1)
        logs.append((starts[first] + ends.gather(1, last[:, None]).squeeze(1)).logsumexp(0))
    return torch.stack(logs)


def choice_logits(encoder: Encoder, talk: Tensor, queries: Tensor) -> Tensor:
    """Logits of the functions whose queries these are, [functions, QUERIES, width], and of none at the end."""
    nothing = encoder.nothing(talk[0])
    return torch.cat([encoder.chosen(queries.flatten(1)).squeeze(1), nothing])
