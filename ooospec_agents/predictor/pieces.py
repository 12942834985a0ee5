"""Texts as token ids that remember which characters they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ooospec_agents.catalog import Function, Slot
from ooospec_agents.predictor.texts import conversation_of, function_text, slot_text

MAX_CONVERSATION_TOKENS = 320
"""Tokens of the conversation, counted from its end."""
MAX_TEXT_TOKENS = 64
"""Tokens of a slot's text."""
MAX_FUNCTION_TOKENS = 40
"""Tokens of a function's text."""
TOKENIZER = "tokenizer.json"
REACH = 8
"""Tokens before and after a token in which a slot's words are looked for."""
FEATURES = 4
"""What is said of a token: how near words of the slot's name, and of its description, stand before and after it."""
_PLAIN = (
    "of the a an in for to is or and be with on by from that this it as at which : ; , . ' \" ( ) - _ / string integer "
    "number array object boolean any required default name value example e g if not null true false user assistant"
)


@dataclass(frozen=True)
class Piece:
    """A text in tokens.

    Attributes:
        text: The text.
        ids: Token ids.
        spans: For each token, the characters that it came from; (0, 0) for one that stands for none.
        options: For each option that the text names: the option, its first and its last token.
    """

    text: str
    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    options: tuple[tuple[Any, int, int], ...] = ()

    def tokens(self, start: int, end: int) -> tuple[int, int] | None:
        """The first and the last token of a stretch of characters; None where it was cut off."""
        inside = [index for index, (low, high) in enumerate(self.spans) if low < end and high > start]
        if not inside or self.spans[inside[0]][0] > start or self.spans[inside[-1]][1] < end:
            return None
        return inside[0], inside[-1]

    def between(self, first: int, last: int) -> str:
        """The characters of the tokens from `first` to `last`."""
        return self.text[self.spans[first][0] : self.spans[last][1]]


class Pieces:
    """Makes pieces, with the tokenizer of one model.

    Args:
        folder: The model's folder, with a `tokenizer.json`.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._of = self._encode("of")[0][0]
        self.begin, self.end = self._special("[CLS]"), self._special("[SEP]")
        self._plain = frozenset([self.begin, self.end, *self._encode(_PLAIN)[0]])

    def conversation(self, messages: Sequence[Any]) -> Piece:
        """The conversation, newest last, between two special tokens."""
        text = conversation_of(messages)
        ids, spans = self._encode(text)
        ids, spans = ids[-MAX_CONVERSATION_TOKENS:], spans[-MAX_CONVERSATION_TOKENS:]
        return Piece(text, (self.begin, *ids, self.end), ((0, 0), *spans, (0, 0)))

    def function(self, function: Function) -> Piece:
        """A function's text."""
        text = function_text(function)
        ids, spans = self._encode(text)
        return self._ended(text, ids, spans, MAX_FUNCTION_TOKENS)

    def slot(self, function: Function, slot: Slot) -> Piece:
        """A slot's text, with its options."""
        written = slot_text(function, slot)
        ids, spans = self._encode(written.text)
        piece = self._ended(written.text, ids, spans, MAX_TEXT_TOKENS)
        options = []
        for option, start, end in written.options:
            if (tokens := piece.tokens(start, end)) is not None:
                options.append((option, *tokens))
        return Piece(piece.text, piece.ids, piece.spans, tuple(options))

    def nearness(self, conversation: Piece, text: Piece) -> list[list[float]]:
        """For each token of the conversation its `FEATURES` towards a slot's text, each from 0 to 1.

        Exact words help where there is little to learn from (after DrQA, arXiv 1704.00051).
        """
        cut = text.ids.index(self._of) if self._of in text.ids else 0
        name, rest = set(text.ids[:cut]) - self._plain, set(text.ids[cut:]) - self._plain
        out = [[0.0] * FEATURES for _ in conversation.ids]
        for place, token in enumerate(conversation.ids):
            for kind, words in enumerate((name, rest - name)):
                if token in words:
                    for step in range(1, REACH + 1):
                        share = 1.0 - (step - 1) / REACH
                        if place + step < len(out):
                            row = out[place + step]
                            row[2 * kind] = max(row[2 * kind], share)
                        if place - step >= 0:
                            row = out[place - step]
                            row[2 * kind + 1] = max(row[2 * kind + 1], share)
        return out

    def _ended(self, text: str, ids: list[int], spans: list[tuple[int, int]], most: int) -> Piece:
        return Piece(text, (*ids[: most - 1], self.end), (*spans[: most - 1], (0, 0)))

    def _encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def _special(self, token: str) -> int:
        number = self._tokenizer.token_to_id(token)
        if number is None:
            msg = f"The tokenizer has no {token!r}: it is not one of a BERT model."
            raise ValueError(msg)
        return int(number)
