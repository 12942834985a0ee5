import pytest

tokenizers = pytest.importorskip("tokenizers")

from ooospec_agents.vllm_plugin.tokens import FastTokenCodec  # noqa: E402


@pytest.fixture
def codec() -> FastTokenCodec:
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
