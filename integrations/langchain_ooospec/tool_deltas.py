"""Tool-call deltas put into the form that LangChain merges right.

A target that accepts several tokens a step may send name and arguments of a call as two entries of one delta,
even in the first chunk. LangChain loses the call then; one entry an index is what it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def tidy(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The entries of one delta with at most one for each call, and none without a function."""
    merged: list[dict[str, Any]] = []
    for entry in entries:
        if not isinstance(entry.get("function"), Mapping):
            continue
        last = next((one for one in reversed(merged) if _same_call(one, entry)), None)
        if last is not None:
            last["function"] = _joined(last["function"], entry["function"])
        else:
            merged.append({**entry, "function": dict(entry["function"])})
    return merged


def _same_call(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    index = first.get("index")
    return index is not None and index == second.get("index") and second.get("id") in (None, "", first.get("id"))


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    pieces = [piece for piece in (first.get("arguments"), second.get("arguments")) if piece]
    joined = {**first, "name": first.get("name") or second.get("name")}
    return {**joined, "arguments": "".join(pieces)}
