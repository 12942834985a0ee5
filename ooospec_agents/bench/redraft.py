"""A recorded output drafted again, without a server: what the drafter of today would propose at each of its steps.

The recorded token ids stand for the target, which is exact for greedy decoding. Times are not simulated.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ooospec_agents.bench.blame import Blame, Reading, blame_difference, common_length, knew
from ooospec_agents.bench.data import Item
from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.budget import DEFAULT_PRICE, Budget
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.drafter import Drafter, TokenCodec
from ooospec_agents.drafting.memory import Stores
from ooospec_agents.drafting.plan import Draft
from ooospec_agents.drafting.request import Method, RequestSpec
from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin.tokens import FastTokenCodec

WIDTH = 40
"""Most tokens drafted a step, as the launcher sets it on a CPU."""


class OpenBudget(Budget):
    """A budget whose confidence limit can be lifted, to see what a drafter knows and holds back."""

    lifted = False

    @property
    def floor(self) -> float:
        """The limit, or none."""
        return 0.0 if self.lifted else super().floor

    def best_length(self, ends: Sequence[int], joint: Sequence[float]) -> int:
        """The best length, or all of the draft."""
        return (ends[-1] if ends else 0) if self.lifted else super().best_length(ends, joint)


@dataclass(frozen=True)
class Recorded:
    """One recorded request.

    Attributes:
        item: The request.
        method: How it is drafted.
        wire_format: In which format the target was expected to answer.
        required: Whether a call was required of it.
        token_ids: The output.
        scope: Name of the stores that it draws from and adds to.
        hint: Its hint, or None.
        hint_at: Output tokens that were there when the hint was read.
        timeline: `[ms, tokens so far, drafted, accepted]` at the end of each step of the run, from which the price of
            a step is learned as it was then; empty where none was recorded.
    """

    item: Item
    method: Method
    wire_format: str
    required: bool
    token_ids: Sequence[int]
    scope: str = ""
    hint: Hint | None = None
    hint_at: int = 0
    timeline: Sequence[Sequence[float]] = ()


@dataclass(frozen=True)
class Step:
    """One step: the tokens that it committed, how many of a draft were in them, and why it ended there.

    Attributes:
        begin: Output tokens before it.
        committed: Tokens that it added.
        drafted: Tokens that were proposed.
        accepted: Of them, those that were right.
        text: Text that it added.
        blame: What it was spent on.
    """

    begin: int
    committed: int
    drafted: int
    accepted: int
    text: str
    blame: Blame


class Redrafter:
    """Drafts recorded outputs again, in the order given, with stores of its own.

    Args:
        codec: The target's tokenizer.
        stop_ids: Ids that end an output, the end-of-text id first.
        width: Most tokens drafted a step.
        price: Of one more token in a step, in steps of one token, until recorded times tell it.
    """

    def __init__(
        self, codec: TokenCodec, stop_ids: Sequence[int], width: int = WIDTH, price: float = DEFAULT_PRICE
    ) -> None:
        self.codec = codec
        self.stop_ids = tuple(stop_ids)
        self.budget = OpenBudget(price)
        self._width = width
        self._stores = Stores()

    def steps(self, recorded: Recorded) -> list[Step]:
        """The steps that the recorded output would take."""
        ids = list(recorded.token_ids)
        came = self.reading(ids, recorded.wire_format)
        drafter = self._drafter(recorded)
        steps: list[Step] = []
        at = 0
        pending = recorded.hint
        while at < len(ids):
            begin, draft, wide, wider = at, Draft([], []), Draft([], []), 0
            if begin:
                if pending is not None and begin >= recorded.hint_at:
                    drafter.offer(pending, 0.0)
                    pending = None
                limit = min(self._width, len(ids) - begin)
                self.budget.lifted = True
                wide = drafter.draft(limit, afresh=True)
                wider = _agreeing(wide.tokens, ids[begin:])
                self.budget.lifted = False
                draft = drafter.draft(limit)
            accepted = min(_agreeing(draft.tokens, ids[begin:]), len(ids) - begin - 1)
            at = begin + accepted + 1
            drafter.commit(ids[begin:at])
            blame = self._blame(came, recorded, begin, draft, accepted, pending)
            if begin and at < len(ids) and accepted == len(draft.tokens):
                if accepted == self._width:
                    blame = replace(blame, cause="full draft")
                elif wider > accepted:
                    blame = replace(blame, cause="held back", source=wide.sources[accepted])
            text = came.text[len(self._text(ids[:begin])) : len(self._text(ids[:at]))]
            steps.append(Step(begin, at - begin, len(draft.tokens), accepted, text, blame))
        drafter.finish()
        for before, after in pairwise(recorded.timeline):
            self.budget.observe(1 + int(after[2]), (after[0] - before[0]) / 1e3)
        return steps

    def reading(self, ids: Sequence[int], wire_format: str) -> Reading:
        """An output as text, read."""
        ended = bool(ids) and ids[-1] in self.stop_ids
        return Reading.of(self._text(ids), wire_format, ended=ended)

    def _text(self, ids: Sequence[int]) -> str:
        ids = ids[:-1] if ids and ids[-1] in self.stop_ids else ids
        return self.codec.decode(ids).rstrip("\ufffd")

    def _drafter(self, recorded: Recorded) -> Drafter:
        spec = RequestSpec(
            id=recorded.item.id,
            scope=recorded.scope,
            method=recorded.method,
            wire_format=recorded.wire_format,
            catalog=Catalog.from_tools(recorded.item.tools),
            required=recorded.required,
            conversation=conversation_text(recorded.item.messages),
        )
        return Drafter(spec, self.codec, self._stores, stop_ids=self.stop_ids, budget=self.budget)

    def _blame(
        self, came: Reading, recorded: Recorded, begin: int, draft: Draft, accepted: int, pending: Hint | None
    ) -> Blame:
        ids = list(recorded.token_ids)
        at = begin + accepted + 1
        if at >= len(ids):
            return Blame("last step")
        if not begin:
            return Blame("first step")
        expected = self.reading([*ids[:begin], *draft.tokens], recorded.wire_format)
        place = common_length(expected.text, came.text)
        wrong = draft.tokens[accepted : accepted + 1]
        blame = blame_difference(expected, came, draft.sources[accepted] if wrong else "")
        if pending is not None and knew(pending, came, place):
            return replace(blame, cause="hint late")
        ends = [len(self._text([*ids[: at - 1], *token])) for token in (wrong, ids[at - 1 : at])]
        if (wrong and place >= max(ends)) or self.codec.decode(ids[:begin]).endswith("\ufffd"):
            return replace(blame, cause="token boundary")
        return blame


def _agreeing(draft: Sequence[int], ids: Sequence[int]) -> int:
    """Tokens at the beginning of a draft that are right."""
    pairs = enumerate(zip(draft, ids, strict=False))
    return next((at for at, (mine, its) in pairs if mine != its), min(len(draft), len(ids)))


def codec_of(folder: Path) -> tuple[FastTokenCodec, tuple[int, ...]]:
    """The tokenizer of a model's folder, and the ids that end its outputs, the end-of-text id first.

    Raises:
        FileNotFoundError: There is no such tokenizer in the folder.
    """
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        msg = f"Model folder {str(folder)!r} has no tokenizer.json, which is needed to read recorded tokens."
        raise FileNotFoundError(msg)
    tokenizer = Tokenizer.from_file(str(file))
    special = _json(folder / "tokenizer_config.json").get("eos_token")
    text = special.get("content") if isinstance(special, dict) else special
    first = tokenizer.token_to_id(text) if text else None
    more = _json(folder / "generation_config.json").get("eos_token_id") or []
    ids = [*([] if first is None else [first]), *(more if isinstance(more, list) else [more])]
    size = int(_json(folder / "config.json").get("vocab_size") or tokenizer.get_vocab_size())
    return FastTokenCodec(tokenizer, size), tuple(dict.fromkeys(ids))


def _json(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}
