"""The encoder sees the same whichever way it is asked."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from ooospec_agents.predictor.encoder import (  # noqa: E402
    Asked,
    Encoder,
    ask,
    hear,
    interact,
    memorise,
    visible,
)
from ooospec_agents.predictor.model import from_bert, load, save  # noqa: E402

TALKS = ([2, 10, 11, 12, 3], [2, 20, 3])
TEXTS = ([5, 6, 7, 3], [8, 3], [9, 10, 11, 12, 13, 3])


@pytest.fixture
def encoder(bert: Path) -> Encoder:
    torch.manual_seed(0)
    return from_bert(bert, lower=1).eval()


def asked(encoder: Encoder, talk: list[int], texts: tuple[list[int], ...]) -> Asked:
    return Asked(encoder.read([talk])[0], encoder.read(list(texts)))


def test_tokens_see_their_conversation_and_queries_their_own_text_too() -> None:
    mine = torch.tensor([[0, 0, 1, 2, -1]])
    held = torch.tensor([[1, 2, 2, -1]])
    assert visible(mine, held)[0].int().tolist()[:4] == [
        [1, 1, 0, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 1, 0, 0, 0],
        [1, 1, 0, 1, 0, 0, 1, 1, 0],
    ]


@torch.no_grad()
def test_pieces_read_together_are_as_read_alone(encoder: Encoder) -> None:
    together = encoder.read(list(TEXTS))
    for text, states in zip(TEXTS, together, strict=True):
        torch.testing.assert_close(states, encoder.read([text])[0])


@torch.no_grad()
def test_slots_asked_together_are_as_asked_alone(encoder: Encoder) -> None:
    talk, queries = interact(encoder, [asked(encoder, TALKS[0], TEXTS)])[0]
    for index, text in enumerate(TEXTS):
        alone_talk, alone = interact(encoder, [asked(encoder, TALKS[0], (text,))])[0]
        torch.testing.assert_close(queries[index], alone[0], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(talk, alone_talk, atol=1e-5, rtol=1e-4)
    # Positive control: another conversation does change what a query becomes.
    other = interact(encoder, [asked(encoder, TALKS[1], TEXTS)])[0][1]
    assert (other - queries).abs().max() > 1e-3


@torch.no_grad()
def test_requests_in_one_batch_are_as_each_alone(encoder: Encoder) -> None:
    requests = [asked(encoder, TALKS[0], TEXTS), asked(encoder, TALKS[1], TEXTS[:1])]
    for one, (talk, queries) in zip(requests, interact(encoder, requests), strict=True):
        alone_talk, alone = interact(encoder, [one])[0]
        torch.testing.assert_close(talk, alone_talk, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(queries, alone, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_what_is_kept_of_texts_answers_as_training_would(encoder: Encoder) -> None:
    talk, queries = interact(encoder, [asked(encoder, TALKS[0], TEXTS)])[0]
    heard = hear(encoder, TALKS[0])
    torch.testing.assert_close(heard.states, talk, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(ask(encoder, heard, memorise(encoder, TEXTS)), queries, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_saved_encoder_says_nearly_the_same(encoder: Encoder, bert: Path, tmp_path: Path) -> None:
    save(encoder, bert, tmp_path)
    again = load(tmp_path)
    for name, tensor in encoder.state_dict().items():
        step = tensor.abs().amax() / 127
        assert (again.state_dict()[name] - tensor).abs().max() <= step


def test_another_kind_of_model_is_refused(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(ValueError, match="'llama'"):
        from_bert(tmp_path)
