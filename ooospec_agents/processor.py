"""What this machine's processor can do."""

from __future__ import annotations

from pathlib import Path


def multiplies_bfloat16() -> bool:
    """Whether the processor has kernels for bfloat16 (AVX-512 or AMX).

    Without them oneDNN has none either, and a step of n tokens costs n steps of one token: drafts cannot pay. In
    float32 they do. A processor that does not say (no Linux, no x86) is taken at vLLM's word.
    """
    try:
        features = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return True
    return "flags" not in features or bool(features & {"avx512_bf16", "amx_bf16"})
