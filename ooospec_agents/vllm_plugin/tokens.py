"""The target's tokenizer, as the drafter needs it: text to ids and back, nothing added, nothing tidied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


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

    def encode(self, text: str) -> list[int]:
        """The ids of `text`. No special tokens are added; those written out in it become their ids."""
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens included."""
        if len(ids) == 1:  # asked for each token of each draft
            return self._texts.get(ids[0]) or self._texts.setdefault(ids[0], self._decode(ids))
        return self._decode(ids)

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self._backend.decode(ids, skip_special_tokens=False)
        return text

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
