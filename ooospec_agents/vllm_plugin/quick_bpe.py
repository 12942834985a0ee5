"""Encoding by `tiktoken` where it does what `tokenizers` does, in a quarter of the time."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from typing import Any

Encode = Callable[[str], list[int]]

PROBES = (
    '<tool_call>\n{"name": "find_flights", "arguments": {"from": "Zürich", "date": "2026-11-30T10:30:00", "n": 12}}',
    '```json\n{\n  "name": "a_b",\n  "arguments": {}\n}\n```\n\n',
    "1. **It's** 3,141.59 €\t\tnaïve 日本語 \u0301e\U0001f600  ",
    "[get_weather(city='São Paulo', days=3)]\r\n\n<function=x>\n<parameter=y>\nTRUE\n</parameter>   \n",
)
"""Texts that both must encode alike before the quick one is used."""


def quick_encoder(backend: Any, byte_of: dict[str, int]) -> Encode | None:
    """An encoder that gives the ids of a `tokenizers.Tokenizer` for what drafts hold, or None where that is not sure.

    That is byte-level BPE whose merges come in the order of their ids, after one split by a pattern. The few texts
    on which the two may still differ cost a draft some tokens, never an answer.

    Args:
        backend: The tokenizer.
        byte_of: The byte that each letter of its vocabulary stands for.
    """
    try:
        import tiktoken

        described = json.loads(backend.to_str())
        pattern = _pattern(described)
        if pattern is None or not _mergeable(described["model"]):
            return None
        added = {token["content"]: token["id"] for token in described["added_tokens"]}
        if not _plain(described["added_tokens"]):
            return None
        vocabulary = described["model"]["vocab"].items()
        ranks = {bytes(byte_of[letter] for letter in text): rank for text, rank in vocabulary if text not in added}
        if any(bytes([byte]) not in ranks for byte in range(256)):
            return None  # a byte that is no token makes it panic, which no `except Exception` catches
        bpe = tiktoken.Encoding("target", pat_str=pattern, mergeable_ranks=ranks, special_tokens=added)
    except (ImportError, KeyError, TypeError, ValueError):
        return None
    composed = described["normalizer"] is not None

    def encode(text: str) -> list[int]:
        if composed and not text.isascii():
            text = unicodedata.normalize("NFC", text)
        try:
            return bpe.encode(text, allowed_special="all")
        except ValueError:  # its patterns do not take long blanks
            return list(backend.encode(text, add_special_tokens=False).ids)

    alike = all(
        encode(probe) == backend.encode(probe, add_special_tokens=False).ids for probe in (*PROBES, " ".join(added))
    )
    return encode if alike else None


def _pattern(described: dict[str, Any]) -> str | None:
    """The pattern by which text is split before it is encoded; None where more happens to it than that."""
    before = described["pre_tokenizer"] or {}
    steps = before.get("pretokenizers", [before])
    if (described["normalizer"] or {"type": "NFC"})["type"] != "NFC" or len(steps) != 2:
        return None
    split, letters = steps
    if split.get("type") != "Split" or split.get("behavior") != "Isolated" or split.get("invert"):
        return None
    if letters.get("type") != "ByteLevel" or letters.get("use_regex") or letters.get("add_prefix_space"):
        return None
    pattern: str | None = split["pattern"].get("Regex")
    return pattern


def _mergeable(model: dict[str, Any]) -> bool:
    """Whether ranks by id are ranks by merge."""
    if model["type"] != "BPE" or model.get("dropout") or model.get("byte_fallback"):
        return False
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        return False
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    return all(one < other for one, other in pairwise(model["vocab"]["".join(pair)] for pair in pairs))


def _plain(added: list[dict[str, Any]]) -> bool:
    """Whether added tokens are found wherever they stand, and none where another might be."""
    if any(token["lstrip"] or token["rstrip"] or token["single_word"] for token in added):
        return False
    texts = sorted(token["content"] for token in added)
    return not any(later.startswith(text) for text, later in pairwise(texts))
