"""The encoder: a BERT's lower layers read conversation and texts apart, its upper ones let queries see both.

A text (of a slot or a function) is read by the lower layers alone, so that what they make of it, its memory, is the
same in every request and is computed once a catalog. In the upper layers the conversation's tokens see each other, and
each text's two query tokens see the conversation and their own text's memory; they point at spans of either (pointer
networks, arXiv 1506.03134; late interaction, arXiv 2004.12832). A request costs its conversation and two tokens a slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

QUERIES = 2
"""Query tokens a text: the first points at a span's start, the second at its end."""
CLASSES = ("absent", "span", "other")
"""What may become of a slot: left out, found somewhere, or written by the target itself."""


@dataclass(frozen=True)
class Shape:
    """Sizes of the encoder; those of all-MiniLM-L6 by default."""

    vocabulary: int = 30522
    width: int = 384
    inner: int = 1536
    heads: int = 12
    layers: int = 6
    positions: int = 512
    pointer: int = 192
    lower: int = 3


class Layer(nn.Module):  # type: ignore[misc]
    """One layer of BERT without its attention's mask: that is the caller's."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=1e-12)
        self.up = nn.Linear(shape.width, shape.inner)
        self.down = nn.Linear(shape.inner, shape.width)
        self.last_norm = nn.LayerNorm(shape.width, eps=1e-12)

    def after(self, before: Tensor, mixed: Tensor, dropout: float = 0.0) -> Tensor:
        """What comes after attention: [N, width] from the layer's input and the heads' output."""
        attended = functional.dropout(self.out(mixed), dropout, self.training)
        middle = self.norm(before + attended)
        inner = self.down(functional.gelu(self.up(middle)))
        out: Tensor = self.last_norm(middle + functional.dropout(inner, dropout, self.training))
        return out


class Encoder(nn.Module):  # type: ignore[misc]
    """The layers and the heads.

    Args:
        shape: Sizes.
        dropout: In training, of each upper layer's two outputs.
    """

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape, self.dropout = shape, dropout
        self._kept: list[tuple[Tensor, Tensor]] | None = None
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.places = nn.Embedding(shape.positions, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.asking = nn.Parameter(torch.randn(QUERIES, shape.width) * 0.02)
        self.asking_norm = nn.LayerNorm(shape.width)
        self.pointers = nn.ModuleList(nn.Linear(shape.width, shape.pointer) for _ in range(QUERIES))
        self.targets = nn.ModuleList(nn.Linear(shape.width, shape.pointer) for _ in range(2 * QUERIES))
        self.biases = nn.ModuleList(nn.Linear(shape.width, 1) for _ in range(2 * QUERIES))
        self.near = nn.Parameter(torch.tensor([2.0, 1.0, 1.0, 0.5]))  # learned on from a plain guess
        # From nothing: until it has learned, a span's end does not depend on where it starts.
        self.follow = nn.ModuleList(_zero(nn.Linear(shape.width, shape.pointer)) for _ in range(2))
        wide = QUERIES * shape.width
        self.outcome = nn.Sequential(nn.Linear(wide, shape.width), nn.GELU(), nn.Linear(shape.width, len(CLASSES)))
        self.chosen = nn.Sequential(nn.Linear(wide, shape.width), nn.GELU(), nn.Linear(shape.width, 1))
        self.nothing = nn.Sequential(nn.Linear(shape.width, shape.width), nn.GELU(), nn.Linear(shape.width, 1))

    @property
    def upper(self) -> list[Layer]:
        """The layers in which queries ask."""
        return [layer for layer in self.layers[self.shape.lower :] if isinstance(layer, Layer)]

    def heads_of(self, projected: Tensor, count: int) -> tuple[Tensor, ...]:
        """`count` projections of [B, L, count * width], each as [B, heads, L, width of a head]."""
        heads = self.shape.heads
        split = projected.unflatten(-1, (count, heads, self.shape.width // heads)).movedim(-3, 0)
        return tuple(one.transpose(1, 2) for one in split)

    def read(self, pieces: Sequence[Sequence[int]]) -> list[Tensor]:
        """What the lower layers make of token ids, each piece by itself: [L, width] each."""
        lengths = [len(piece) for piece in pieces]
        most = max(lengths)
        real = torch.arange(most)[None] < torch.tensor(lengths)[:, None]
        flat = real.flatten().nonzero().squeeze(1)
        ids = torch.tensor([number for piece in pieces for number in piece])
        positions = torch.cat([torch.arange(length) for length in lengths])
        hidden: Tensor = self.norm(self.words(ids) + self.places(positions))
        for layer in self.layers[: self.shape.lower]:
            padded = _pad(layer.qkv(hidden), flat, len(pieces), most)
            asked, keys, values = self.heads_of(padded, 3)
            mixed = functional.scaled_dot_product_attention(asked, keys, values, attn_mask=real[:, None, None])
            hidden = layer.after(hidden, _unpad(mixed, flat))
        return list(hidden.split(lengths))

    def remember(self, memory: Tensor) -> list[Tensor]:
        """The keys and values of texts' memory [..., width] in each upper layer: [..., 2 * width]."""
        return [functional.linear(memory, weight, bias) for weight, bias in self._kept or self._projections()]

    def keep_projections(self) -> None:
        """Keep what `remember` needs of the upper layers, whose matrices may be replaced then."""
        self._kept = self._projections()

    def _projections(self) -> list[tuple[Tensor, Tensor]]:
        width = self.shape.width
        return [(one.qkv.weight[width:], one.qkv.bias[width:]) for one in self.upper]

    def queries(self, memories: Sequence[Tensor]) -> Tensor:
        """The first state of each text's queries, [texts * QUERIES, width]."""
        means = torch.stack([memory.mean(0) for memory in memories])
        out: Tensor = self.asking_norm(means[:, None] + self.asking)
        return out.flatten(0, 1)

    def offers(self, which: int, conversation: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What tokens offer as a span's start (`which` 0) or end (1): their keys [N, pointer] and biases [N].

        Args:
            which: 0 or 1.
            conversation: Last states of the conversation's tokens, [L, width].
            memory: A text's memory, [T, width], whose tokens follow; None: the conversation alone.
        """
        keys, biases = self.targets[which](conversation), self.biases[which](conversation).squeeze(1)
        if memory is None:
            return keys, biases
        own, also = self.targets[QUERIES + which](memory), self.biases[QUERIES + which](memory).squeeze(1)
        return torch.cat([keys, own]), torch.cat([biases, also])

    def starts(self, query: Tensor, offers: tuple[Tensor, Tensor], nearness: Tensor) -> Tensor:
        """Scores of N tokens as a span's start, [N].

        Args:
            query: The first query's last state, [width].
            offers: What the tokens offer.
            nearness: Features of the first L of them, the conversation's, [L, FEATURES]; see `Pieces.nearness`.
        """
        scores = offers[0] @ self.pointers[0](query) * self.shape.pointer**-0.5 + offers[1]
        near = nearness @ self.near
        out: Tensor = scores + functional.pad(near, (0, len(scores) - len(near)))
        return out

    def ends(self, query: Tensor, begun: Tensor, memory: Tensor, offers: tuple[Tensor, Tensor]) -> Tensor:
        """Scores of tokens as a span's end, [S, N], given where it starts.

        Args:
            query: The second query's last state, [width].
            begun: States of the S tokens where it may start, [S, width]: last ones, or memory.
            memory: For each of them, whether its state is memory, [S].
            offers: What the tokens offer.
        """
        followed = torch.where(memory[:, None], self.follow[1](begun), self.follow[0](begun))
        asked = self.pointers[1](query) + followed
        scores: Tensor = asked @ offers[0].T * self.shape.pointer**-0.5 + offers[1]
        return scores


def _zero(linear: nn.Linear) -> nn.Linear:
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


def _pad(rows: Tensor, flat: Tensor, count: int, most: int) -> Tensor:
    return rows.new_zeros(count * most, rows.shape[1]).index_copy(0, flat, rows).view(count, most, -1)


def _unpad(mixed: Tensor, flat: Tensor) -> Tensor:
    return mixed.transpose(1, 2).flatten(2).flatten(0, 1).index_select(0, flat)


def load_bert(encoder: Encoder, tensors: dict[str, Tensor]) -> None:
    """Put the weights of a BERT, by their names in transformers, into the encoder; its heads stay as they are."""
    state: dict[str, Tensor] = {
        "words.weight": tensors["embeddings.word_embeddings.weight"],
        "places.weight": tensors["embeddings.position_embeddings.weight"]
        + tensors["embeddings.token_type_embeddings.weight"][0],
    }
    pairs = [("norm", "embeddings.LayerNorm")]
    for index in range(encoder.shape.layers):
        theirs, ours = f"encoder.layer.{index}", f"layers.{index}"
        for end in ("weight", "bias"):
            parts = [tensors[f"{theirs}.attention.self.{name}.{end}"] for name in ("query", "key", "value")]
            state[f"{ours}.qkv.{end}"] = torch.cat(parts)
        pairs += [
            (f"{ours}.out", f"{theirs}.attention.output.dense"),
            (f"{ours}.norm", f"{theirs}.attention.output.LayerNorm"),
            (f"{ours}.up", f"{theirs}.intermediate.dense"),
            (f"{ours}.down", f"{theirs}.output.dense"),
            (f"{ours}.last_norm", f"{theirs}.output.LayerNorm"),
        ]
    for ours, theirs in pairs:
        for end in ("weight", "bias"):
            state[f"{ours}.{end}"] = tensors[f"{theirs}.{end}"]
    missing, unexpected = encoder.load_state_dict(state, strict=False)
    heads = ("asking", "asking_norm", "pointers", "targets", "biases", "follow", "near", "outcome", "chosen", "nothing")
    if unexpected or any(name.split(".")[0] not in heads for name in missing):
        msg = f"These weights are not of this shape of BERT: {missing or unexpected}."
        raise ValueError(msg)


@dataclass(frozen=True)
class Asked:
    """One request for the upper layers.

    Attributes:
        conversation: The conversation's states after the lower layers, [L, width].
        memories: Each text's states after the lower layers.
    """

    conversation: Tensor
    memories: Sequence[Tensor]


def interact(encoder: Encoder, asked: Sequence[Asked]) -> list[tuple[Tensor, Tensor]]:
    """The last states of several requests, each: conversation [L, width], queries [texts, QUERIES, width].

    Tokens see what `visible` says: the same whether requests, or slots, are asked together or one by one.
    """
    lengths, owners, remembered = [], [], []
    for one in asked:
        texts = range(1, len(one.memories) + 1)
        own = [0] * len(one.conversation) + [text for text in texts for _ in range(QUERIES)]
        owners.append(own)
        lengths.append(len(own))
        remembered.append([text for text, memory in zip(texts, one.memories, strict=True) for _ in memory])
    most, room = max(lengths), max(map(len, remembered))
    mine, held = _filled(owners, most), _filled(remembered, room)
    mask = visible(mine, held)[:, None]
    flat = (mine >= 0).flatten().nonzero().squeeze(1)
    kept = (held >= 0).flatten().nonzero().squeeze(1)
    states = torch.cat([part for one in asked for part in (one.conversation, encoder.queries(one.memories))])
    memory = torch.cat([memory for one in asked for memory in one.memories])
    for layer, pairs in zip(encoder.upper, encoder.remember(memory), strict=True):
        padded = _pad(layer.qkv(states), flat, len(asked), most)
        query, keys, values = encoder.heads_of(padded, 3)
        old_keys, old_values = encoder.heads_of(_pad(pairs, kept, len(asked), room), 2)
        mixed = functional.scaled_dot_product_attention(
            query, torch.cat([keys, old_keys], 2), torch.cat([values, old_values], 2), attn_mask=mask
        )
        states = layer.after(states, _unpad(mixed, flat), encoder.dropout)
    out = []
    for one, rows in zip(asked, states.split(lengths), strict=True):
        cut = len(one.conversation)
        out.append((rows[:cut], rows[cut:].unflatten(0, (len(one.memories), QUERIES))))
    return out


def visible(mine: Tensor, held: Tensor) -> Tensor:
    """Which tokens see which, [B, L, L + T].

    Args:
        mine: Owners of the L tokens: 0 the conversation, a text's number from 1 for its queries, -1 padding; [B, L].
        held: Owners of the T tokens of memory, the same way; [B, T].
    """
    both = torch.cat([mine, held], 1)
    same = mine[:, :, None] == both[:, None, :]
    talk = (both == 0)[:, None, :] & (mine >= 0)[:, :, None]
    return same | talk


def _filled(rows: Sequence[Sequence[int]], most: int) -> Tensor:
    return torch.tensor([[*row, *([-1] * (most - len(row)))] for row in rows], dtype=torch.long).view(len(rows), most)


@dataclass(frozen=True)
class Heard:
    """A conversation in the upper layers: its last states, and each layer's keys and values."""

    states: Tensor
    pairs: list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Memory:
    """A text as queries meet it: its states after the lower layers, and each upper layer's keys and values of them."""

    states: Tensor
    pairs: list[tuple[Tensor, Tensor]]


def memorise(encoder: Encoder, texts: Sequence[Sequence[int]]) -> list[Memory]:
    """The memories of texts, the same whatever is asked later."""
    out = []
    for states in encoder.read(texts):
        pairs = []
        for both in encoder.remember(states):
            keys, values = encoder.heads_of(both[None], 2)
            pairs.append((keys, values))
        out.append(Memory(states, pairs))
    return out


def hear(encoder: Encoder, conversation: Sequence[int]) -> Heard:
    """A conversation's way through all layers; it sees no query."""
    states = encoder.read([conversation])[0]
    pairs = []
    for layer in encoder.upper:
        asked, keys, values = encoder.heads_of(layer.qkv(states)[None], 3)
        pairs.append((keys, values))
        mixed = functional.scaled_dot_product_attention(asked, keys, values)
        states = layer.after(states, mixed[0].transpose(0, 1).flatten(1))
    return Heard(states, pairs)


def ask(encoder: Encoder, heard: Heard, memories: Sequence[Memory]) -> Tensor:
    """The last states of the texts' queries, [texts, QUERIES, width]: what `interact` says of them."""
    owners = torch.arange(1, len(memories) + 1).repeat_interleave(QUERIES)
    held = torch.tensor([text for text, memory in enumerate(memories, 1) for _ in memory.states])
    held = torch.cat([torch.zeros(len(heard.states), dtype=torch.long), held])
    mask = visible(owners[None], held[None])[:, None]
    states = encoder.queries([memory.states for memory in memories])
    for index, layer in enumerate(encoder.upper):
        asked, keys, values = encoder.heads_of(layer.qkv(states)[None], 3)
        before = [heard.pairs[index], *(memory.pairs[index] for memory in memories)]
        keys = torch.cat([keys, *(one for one, _ in before)], 2)
        values = torch.cat([values, *(one for _, one in before)], 2)
        mixed = functional.scaled_dot_product_attention(asked, keys, values, attn_mask=mask)
        states = layer.after(states, mixed[0].transpose(0, 1).flatten(1))
    return states.unflatten(0, (len(memories), QUERIES))
