import pytest
from hypothesis import given
from hypothesis import strategies as st

tokenizers = pytest.importorskip("tokenizers")

from ooospec_agents.vllm_plugin.tokens import FastTokenCodec  # noqa: E402


def byte_level() -> FastTokenCodec:
    """A byte-level tokenizer that adds a start token and cuts off, as a tokenizer file may say."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.add_special_tokens(["<start>", "<call>"])  # 256 and 257
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="<start> $A", special_tokens=[("<start>", 256)]
    )
    backend.enable_truncation(4)
    return FastTokenCodec(backend, 300)


@pytest.fixture
def codec() -> FastTokenCodec:
    return byte_level()


def test_nothing_is_added_or_cut_off(codec: FastTokenCodec) -> None:
    ids = codec.encode("a longer text")
    assert len(ids) == 13
    assert 256 not in ids


def test_special_tokens_written_out_are_one_id(codec: FastTokenCodec) -> None:
    assert codec.encode("<call>") == [257]
    assert codec.decode([257]) == "<call>"


@pytest.mark.parametrize("text", ['{"city": "Köln"}', "  two  spaces .\n", "日本", "a , b"])
def test_text_comes_back_as_it_was(codec: FastTokenCodec, text: str) -> None:
    assert codec.decode(codec.encode(text)) == text


def test_vocabulary_is_the_models(codec: FastTokenCodec) -> None:
    assert codec.vocab_size == 300


@given(st.lists(st.integers(0, 299), max_size=12))
def test_bytes_are_joined_as_the_library_joins_them(ids: list[int]) -> None:
    ours = byte_level()
    assert ours.decode(ids) == ours._backend.decode(ids, skip_special_tokens=False)


def test_an_added_word_outside_the_alphabet_is_text(codec: FastTokenCodec) -> None:
    codec._backend.add_tokens(["日 本"])  # 258
    assert codec.decode([258, 257]) == "日 本<call>" == codec._backend.decode([258, 257], skip_special_tokens=False)
