"""Examples: a request and its right answer as one block of tokens, with what its heads should say."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ooospec_agents.catalog import Catalog, Function
from ooospec_agents.predictor.labels import Label, label
from ooospec_agents.predictor.pieces import Pieces
from ooospec_agents.training.augment import Odds, Pool, augment
from ooospec_agents.training.spans.settings import SpanSettings
from ooospec_agents.training.traces import Call, Request

ODDS = Odds(swap=0.4, mask=0.1, distract=0.25, no_call=0.08)
TURNS = 0.3
"""How often a request of one turn is told in several, as agents' users do."""
_ASKS = ("Sure. What is the NAME?", "Of course. May I have the NAME?", "Which NAME?", "And the NAME?")
_TELLS = ("It's VALUE.", "VALUE", "VALUE, please.", "The NAME is VALUE.", "My NAME is VALUE.", "Let me see: VALUE.")


@dataclass(frozen=True)
class SpanExample:
    """One request to learn from.

    Attributes:
        conversation: The conversation's token ids.
        texts: Token ids of texts, those of slots first, then those of functions.
        slots: The slots' labels.
        near: For each slot, the features of the conversation's tokens; see `Pieces.nearness`.
        chosen: Index of the right function; their number: nothing is called; None: no choice, and no functions.
    """

    conversation: tuple[int, ...]
    texts: tuple[tuple[int, ...], ...]
    slots: tuple[Label, ...]
    near: tuple[list[list[float]], ...]
    chosen: int | None

    @property
    def tokens(self) -> int:
        """Tokens of it all."""
        return len(self.conversation) + sum(map(len, self.texts))


def in_turns(request: Request, rng: random.Random) -> Request:
    """The request with values of its call taken out of the user's turn and asked for by an assistant.

    A request of several turns, or one whose values do not stand in it verbatim and once, stays as it is.
    """
    if len(request.messages) != 1 or not request.calls:
        return request
    text = request.messages[0].get("content")
    if not isinstance(text, str):
        return request
    asked = []
    for name, value in request.calls[0].arguments.items():
        written = value if isinstance(value, str) else str(value)
        alone = re.findall(rf"(?<!\w){re.escape(written)}(?!\w)", text) if written else []
        if not isinstance(value, bool | list | dict) and value is not None and len(alone) == 1:
            asked.append((name.replace("_", " "), written))
    told = rng.sample(asked, min(len(asked), rng.randint(1, 3)))
    messages: list[dict[str, str]] = []
    for name, written in told:
        text = re.sub(rf"(?<!\w)['\"`]?{re.escape(written)}['\"`]?(?!\w)", f"a {name}".replace("\\", ""), text, count=1)
        messages.append({"role": "assistant", "content": rng.choice(_ASKS).replace("NAME", name)})
        messages.append({"role": "user", "content": rng.choice(_TELLS).replace("NAME", name).replace("VALUE", written)})
    return replace(request, messages=({"role": "user", "content": text}, *messages))


def build(
    request: Request, pieces: Pieces, rng: random.Random, settings: SpanSettings, habits: bool
) -> SpanExample | None:
    """The example of a request, by its first call; None where there is nothing to learn.

    Args:
        request: The request with its right answer.
        pieces: Makes tokens.
        rng: Draws which slots and functions are kept where there are too many.
        settings: How many.
        habits: Whether the answer is the target's own: a data set's reference leaves out optional slots that a
            target fills, so without it a slot without a value is not learnt from.
    """
    catalog = Catalog.from_tools(list(request.tools))
    call = request.calls[0] if request.calls else None
    called = catalog.function(call.name) if call else None
    if not request.known or not catalog.functions or (call is not None and called is None):
        return None
    conversation = pieces.conversation(request.messages)
    texts, labels, near = [], [], []
    if call is not None and called is not None:
        asked = [slot for slot in called.slots if habits or slot.required or slot.name in call.arguments]
        if len(asked) > settings.max_slots:
            asked = rng.sample(asked, settings.max_slots)
        for slot in asked:
            text = pieces.slot(called, slot)
            texts.append(text.ids)
            near.append(pieces.nearness(conversation, text))
            labels.append(label(call.arguments.get(slot.name), slot, conversation, text))
    functions, chosen = _choice(catalog.functions, called, rng, settings.max_functions)
    texts += [pieces.function(function).ids for function in functions]
    if not texts:
        return None
    return SpanExample(conversation.ids, tuple(texts), tuple(labels), tuple(near), chosen)


def _choice(
    functions: Sequence[Function], called: Function | None, rng: random.Random, most: int
) -> tuple[list[Function], int | None]:
    """Functions to choose from and the right one's index; no choice where one is bound, and called."""
    if len(functions) == 1 and called is not None:
        return [], None
    others = [function for function in functions if function is not called]
    kept = rng.sample(others, min(len(others), most - 1))
    if called is None:
        return kept, len(kept)
    kept.insert(rng.randint(0, len(kept)), called)
    return kept, kept.index(called)


class SpanStream:
    """All requests of a run, in an order that depends on the seed alone: passes over all, then over the traces.

    Args:
        requests: The requests with the data sets' references.
        traces: The target's calls by request id; where there are some, they are the right answer.
        pieces: Makes tokens.
        settings: Passes, limits and the seed.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        traces: Mapping[str, tuple[Call, ...]],
        pieces: Pieces,
        settings: SpanSettings,
    ) -> None:
        self._settings, self._pieces = settings, pieces
        self._pool = Pool.of(requests)
        traced = [replace(one, calls=traces[one.id], known=True) for one in requests if one.id in traces]
        rest = [one for one in requests if one.known and one.id not in traces]
        self._all = [(one, True) for one in traced] + [(one, False) for one in rest]
        self._traced = [(one, True) for one in traced]

    @property
    def size(self) -> int:
        """Requests, all passes together."""
        return self._settings.passes * len(self._all) + self._settings.trace_passes * len(self._traced)

    def read(self, start: int) -> Iterator[tuple[int, SpanExample]]:
        """Examples with their numbers, from number `start` on."""
        for number in range(start, self.size):
            request, habits = self._request(number)
            rng = random.Random(f"{self._settings.seed}/{number}")
            request = augment(request, self._pool, rng, ODDS)
            if rng.random() < TURNS:
                request = in_turns(request, rng)
            example = build(request, self._pieces, rng, self._settings, habits)
            if example is not None and example.tokens <= self._settings.max_tokens:
                yield number, example

    def _request(self, number: int) -> tuple[Request, bool]:
        group, passes = self._all, self._settings.passes
        if number >= passes * len(group):
            number -= passes * len(group)
            group = self._traced
        done, place = divmod(number, len(group))
        order = list(range(len(group)))
        random.Random(f"{self._settings.seed}/{len(group)}/{done}").shuffle(order)
        return group[order[place]]
