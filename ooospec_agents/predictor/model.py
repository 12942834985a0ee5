"""A span predictor's folder: the encoder's weights in eight bits, its tokenizer, its sizes and its calibration."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ooospec_agents.files import replacing
from ooospec_agents.predictor.calibration import IDENTITY, Isotonic
from ooospec_agents.predictor.encoder import Encoder, Shape, load_bert
from ooospec_agents.predictor.pieces import TOKENIZER

WEIGHTS = "span.safetensors"
SIZES = "span.json"
CALIBRATION = "calibration.json"
_SCALE = ".scale"


@dataclass(frozen=True)
class Calibration:
    """What was measured on held-out requests.

    Attributes:
        temperature: What the functions' logits are divided by.
        lexical: Weight of the words that function and conversation share, beside the encoder's logit.
        guesses: Weight of lexical guesses of a value, beside the encoder's probability.
        value: Confidence of a value, from its raw probability.
        absent: Confidence that a slot is left out.
    """

    temperature: float = 1.0
    lexical: float = 0.0
    guesses: float = 0.0
    value: Isotonic = IDENTITY
    absent: Isotonic = IDENTITY


def from_bert(folder: Path, lower: int = 3, dropout: float = 0.0) -> Encoder:
    """An encoder with untrained heads, from a BERT's folder as transformers writes it.

    Raises:
        ValueError: The folder holds another kind of model.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") != "bert":
        msg = f"{str(folder)!r} holds a {config.get('model_type')!r} model: the span predictor's encoder is a BERT."
        raise ValueError(msg)
    shape = Shape(
        vocabulary=config["vocab_size"],
        width=config["hidden_size"],
        inner=config["intermediate_size"],
        heads=config["num_attention_heads"],
        layers=config["num_hidden_layers"],
        positions=config["max_position_embeddings"],
        pointer=config["hidden_size"] // 2,
        lower=lower,
    )
    encoder = Encoder(shape, dropout)
    tensors = load_file(folder / "model.safetensors")
    load_bert(encoder, {name.removeprefix("bert."): tensor.float() for name, tensor in tensors.items()})
    return encoder


def save(encoder: Encoder, tokenizer: Path, folder: Path) -> None:
    """Write the folder; each file is replaced as a whole. Matrices are kept in eight bits, a scale a row."""
    folder.mkdir(parents=True, exist_ok=True)
    packed: dict[str, Tensor] = {}
    for name, tensor in encoder.state_dict().items():
        if tensor.dim() == 2 and tensor.shape[0] > 4:
            scale = (tensor.abs().amax(1, keepdim=True) / 127).clamp(min=1e-8)
            packed[name] = (tensor / scale).round().to(torch.int8).contiguous()
            packed[name + _SCALE] = scale.squeeze(1).to(torch.float32)
        else:
            packed[name] = tensor.detach().to(torch.float16).contiguous()
    with replacing(folder / WEIGHTS) as partial:
        save_file(packed, partial)
    (folder / SIZES).write_text(json.dumps(asdict(encoder.shape), indent=2) + "\n", encoding="utf-8")
    if not (folder / TOKENIZER).is_file():
        shutil.copyfile(tokenizer / TOKENIZER, folder / TOKENIZER)


def load(folder: Path) -> Encoder:
    """The encoder of a folder, ready to predict, in float32."""
    shape = Shape(**json.loads((folder / SIZES).read_text(encoding="utf-8")))
    encoder = Encoder(shape)
    packed = load_file(folder / WEIGHTS)
    state = {}
    for name, tensor in packed.items():
        if name.endswith(_SCALE):
            continue
        scale = packed.get(name + _SCALE)
        state[name] = tensor.float() if scale is None else tensor.float() * scale[:, None]
    # These came later than the first predictors: without them they are as they were.
    fresh = {name: value for name, value in encoder.state_dict().items() if name.startswith(("follow.", "near"))}
    encoder.load_state_dict({**fresh, **state})
    encoder.eval().requires_grad_(False)
    return encoder


def save_calibration(calibration: Calibration, folder: Path) -> None:
    """Write the calibration into a predictor's folder."""
    (folder / CALIBRATION).write_text(json.dumps(asdict(calibration), indent=2) + "\n", encoding="utf-8")


def load_calibration(folder: Path) -> Calibration:
    """A predictor's calibration; none changes nothing."""
    path = folder / CALIBRATION
    if not path.is_file():
        return Calibration()
    said = json.loads(path.read_text(encoding="utf-8"))
    curves = {name: Isotonic(tuple(said[name]["xs"]), tuple(said[name]["ys"])) for name in ("value", "absent")}
    return Calibration(said["temperature"], said["lexical"], said["guesses"], **curves)
