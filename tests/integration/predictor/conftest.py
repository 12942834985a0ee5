"""A tiny BERT with random weights, as transformers would have written it, and requests to train it on."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from safetensors.torch import save_file  # noqa: E402
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: E402

WORDS = "user rome oslo paris weather city day of for : ; , . ( ) string integer required days tells it the in news"
CONFIG = {
    "model_type": "bert",
    "hidden_size": 24,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "max_position_embeddings": 128,
}


def tiny_tensors(vocabulary: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)

    def random(*sizes: int) -> Any:
        return torch.randn(*sizes, generator=generator) * 0.3

    tensors = {
        "embeddings.word_embeddings.weight": random(vocabulary, 24),
        "embeddings.position_embeddings.weight": random(128, 24),
        "embeddings.token_type_embeddings.weight": random(2, 24),
        "embeddings.LayerNorm.weight": torch.ones(24),
        "embeddings.LayerNorm.bias": torch.zeros(24),
    }
    for index in range(3):
        layer = f"encoder.layer.{index}"
        shapes = {
            "attention.self.query": (24, 24),
            "attention.self.key": (24, 24),
            "attention.self.value": (24, 24),
            "attention.output.dense": (24, 24),
            "intermediate.dense": (32, 24),
            "output.dense": (24, 32),
        }
        for name, (high, wide) in shapes.items():
            tensors[f"{layer}.{name}.weight"] = random(high, wide)
            tensors[f"{layer}.{name}.bias"] = random(high)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            tensors[f"{layer}.{name}.weight"] = torch.ones(24)
            tensors[f"{layer}.{name}.bias"] = torch.zeros(24)
    return tensors


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    letters = [mark + letter for mark in ("", "##") for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *WORDS.split()]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": len(vocabulary)}))
    save_file(tiny_tensors(len(vocabulary)), folder / "model.safetensors")
    return folder


def weather_tool(**more: Any) -> dict[str, Any]:
    city = {"type": "string", "description": "The city."}
    properties = {"city": city, "days": {"type": "integer"}, **more}
    parameters = {"type": "object", "properties": properties, "required": ["city"]}
    return {
        "type": "function",
        "function": {"name": "weather", "description": "Tells the weather.", "parameters": parameters},
    }


NEWS = {"type": "function", "function": {"name": "news", "description": "Tells the news.", "parameters": {}}}


def request_line(number: int, city: str) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "source": "s",
        "messages": [{"role": "user", "content": f"Weather in {city} for {number + 2} days"}],
        "tools": [weather_tool(), NEWS],
        "gold": [{"name": "weather", "arguments": {"city": city, "days": number + 2}}],
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    lines = [request_line(number, ("Rome", "Oslo", "Paris")[number % 3]) for number in range(6)]
    (folder / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    held_out = {**request_line(0, "Rome"), "gold": [{"name": "stocks", "arguments": {}}], "tools": []}
    (folder / "eval.jsonl").write_text(json.dumps(held_out) + "\n")
    return folder
