"""What this machine's processor can do."""

from __future__ import annotations

from pathlib import Path

WIDE = (("AMX", {"amx_bf16"}), ("AVX-512 BF16", {"avx512_bf16"}), ("AVX-512", {"avx512f"}), ("AVX2", {"avx2"}))
"""What matters of a processor for a model on it, the best first."""


def features() -> set[str]:
    """The processor's features by the names that Linux gives them; empty where it does not say (no Linux, no x86)."""
    try:
        words = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return set()
    return words if "flags" in words else set()


def multiplies_bfloat16() -> bool:
    """Whether the processor has kernels for bfloat16 (AVX-512 or AMX).

    Without them oneDNN has none either, and a step of n tokens costs n steps of one token: drafts cannot pay. In
    float32 they do. A processor that does not say is taken at vLLM's word.
    """
    known = features()
    return not known or bool(known & {"avx512_bf16", "amx_bf16"})


def vector_unit() -> str:
    """The widest arithmetic that the processor has, in its makers' word, or "" where it does not say."""
    known = features()
    return next((name for name, needed in WIDE if needed & known), "")
