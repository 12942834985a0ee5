"""The target's tokenizer, as the drafter needs it: text to ids and back, nothing added, nothing tidied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ooospec_agents.vllm_plugin.quick_bpe import quick_encoder


def _byte_letters() -> dict[str, int]:
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(visible))
    return {chr(byte): byte for byte in visible} | {chr(256 + at): byte for at, byte in enumerate(others)}


BYTE_OF = _byte_letters()
"""The byte that each letter of a byte-level vocabulary stands for, as GPT-2 has it and `tokenizers` after it."""


class CodecError(RuntimeError):
    """The target's tokenizer cannot be used for drafting. The message says why."""


class FastTokenCodec:
    """A `tokenizers` tokenizer without the layers above it, which cost more than the work itself.

    Attributes:
        vocab_size: Ids are below this: the rows of the model's embedding, which may be more than the
        tokenizer has.
    """

    def __init__(self, backend: Any, vocab_size: int) -> None:
        """Wrap a `tokenizers.Tokenizer`; it must not cut off or pad, so it should be this codec's own."""
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self.vocab_size = vocab_size
        self._texts: dict[int, str] = {}
        self._quick = quick_encoder(backend, BYTE_OF)
        self._bytes: dict[int, bytes] | None = {} if type(backend.decoder).__name__ == "ByteLevel" else None

    def encode(self, text: str) -> list[int]:
        """The ids of `text`. No special tokens are added; those written out in it become their ids."""
        if self._quick is not None:
            return self._quick(text)
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens included."""
        if len(ids) == 1:  # asked for each token of each draft
            return self._texts.get(ids[0]) or self._texts.setdefault(ids[0], self._decode(ids))
        return self._decode(ids)

    def _decode(self, ids: Sequence[int]) -> str:
        known = self._bytes
        if known is None:
            text: str = self._backend.decode(ids, skip_special_tokens=False)
            return text
        # A byte-level decoder only joins bytes; asking it costs several times as much once its tables have
        # left the processor's caches, as they have after each step.
        try:
            parts = [known[token] for token in ids]
        except KeyError:
            known.update((token, self._spelt(token)) for token in ids if token not in known)
            parts = [known[token] for token in ids]
        return b"".join(parts).decode("utf-8", "replace")

    def _spelt(self, token: int) -> bytes:
        letters = self._backend.id_to_token(token) or ""
        try:
            return bytes(BYTE_OF[letter] for letter in letters)
        except KeyError:
            return letters.encode()

    @classmethod
    def of_model(cls, model_config: Any) -> FastTokenCodec:
        """The codec of the model that a vLLM `ModelConfig` names.

        Raises:
            CodecError: The model runs without a tokenizer, or its tokenizer is not a fast one.
        """
        from tokenizers import Tokenizer
        from vllm.tokenizers import cached_tokenizer_from_config

        tokenizer = cached_tokenizer_from_config(model_config)
        if tokenizer is None:
            msg = "the model runs without a tokenizer (--skip-tokenizer-init): drafts need one"
            raise CodecError(msg)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, Tokenizer):
            msg = f"tokenizer {type(tokenizer).__name__!r} of {model_config.tokenizer!r} is not a fast one"
            raise CodecError(msg)
        copy = Tokenizer.from_str(backend.to_str())
        return cls(copy, int(model_config.get_vocab_size()))
