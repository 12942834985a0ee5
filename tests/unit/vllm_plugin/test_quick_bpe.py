"""The quick encoder gives the library's ids, or there is none."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("tiktoken")

from ooospec_agents.vllm_plugin.quick_bpe import quick_encoder  # noqa: E402
from ooospec_agents.vllm_plugin.tokens import BYTE_OF, FastTokenCodec  # noqa: E402

PATTERN = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CORPUS = [
    '{"name": "weather", "arguments": {"city": "Zürich", "days": 3}}',
    "the weather in the city, the days there",
] * 9


def trained(added: str = "<tool_call>", **flags: bool) -> Any:
    """A byte-level tokenizer as Qwen's is built, with merges of its own."""
    backend = tokenizers.Tokenizer(tokenizers.models.BPE())
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERN), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(CORPUS, trainer)
    backend.add_tokens([tokenizers.AddedToken(added, special=False, normalized=False, **flags)])
    return backend


def ids(backend: Any, text: str) -> list[int]:
    return list(backend.encode(text, add_special_tokens=False).ids)


TRAINED = trained()
ENCODE = quick_encoder(TRAINED, BYTE_OF)


@given(st.text(st.sampled_from("the wcity<tool_>{\":1,\n\r\t'é日\u0301😀"), max_size=40))
def test_ids_are_the_librarys(text: str) -> None:
    assert ENCODE is not None
    assert ENCODE(text) == ids(TRAINED, text)


def test_composed_text_is_encoded_composed() -> None:
    backend = trained()
    backend.normalizer = tokenizers.normalizers.NFC()
    encode = quick_encoder(backend, BYTE_OF)
    assert encode is not None
    assert encode("u\u0308") == ids(backend, "ü")


def test_what_its_patterns_do_not_take_is_left_to_the_library() -> None:
    assert ENCODE is not None
    assert ENCODE(" " * 1_000_000) == ids(TRAINED, " " * 1_000_000)


def test_the_codec_encodes_quickly_where_it_can() -> None:
    codec = FastTokenCodec(trained(), 500)
    assert codec._quick is not None
    assert codec.encode("the city<tool_call>") == ids(TRAINED, "the city<tool_call>")


def lower_cased(backend: Any) -> None:
    backend.normalizer = tokenizers.normalizers.Lowercase()


def digits_apart(backend: Any) -> None:
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )


def prefixed(backend: Any) -> None:
    backend.add_tokens([tokenizers.AddedToken("<tool_call>x", normalized=False)])


def shuffled(backend: Any) -> None:
    letters = {letter: number for number, letter in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}
    vocabulary = {**letters, "ab": 257, "bc": 256}
    backend.model = tokenizers.models.BPE(vocab=vocabulary, merges=[("a", "b"), ("b", "c")])


def without_a_byte(backend: Any) -> None:
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    unused = next(letter for letter in alphabet if BYTE_OF[letter] == 0xC1)  # in no UTF-8 text: no probe meets it
    backend.model = tokenizers.models.BPE(vocab={c: n for n, c in enumerate(alphabet) if c != unused}, merges=[])


@pytest.mark.parametrize("other", [lower_cased, digits_apart, prefixed, shuffled, without_a_byte])
def test_another_kind_of_tokenizer_is_left_to_the_library(other: Callable[[Any], None]) -> None:
    backend = trained()
    other(backend)
    assert quick_encoder(backend, BYTE_OF) is None


def test_added_words_that_stand_alone_only_are_left_to_the_library() -> None:
    assert quick_encoder(trained("<word>", single_word=True), BYTE_OF) is None


def test_no_other_vocabulary_is_taken_for_bytes() -> None:
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    assert quick_encoder(backend, BYTE_OF) is None
