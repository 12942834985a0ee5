"""What a processor says of itself, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ooospec_agents import processor


def says(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let the machine's processor describe itself with `text`."""
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)


@pytest.mark.parametrize(
    ("flags", "unit", "bfloat16"),
    [
        ("fpu avx avx2", "AVX2", False),
        ("fpu avx2 avx512f avx512bw", "AVX-512", False),
        ("avx2 avx512f avx512_bf16", "AVX-512 BF16", True),
        ("avx2 avx512f avx512_bf16 amx_bf16", "AMX", True),
        ("fpu sse2", "", False),
    ],
)
def test_the_widest_unit_is_named(monkeypatch: pytest.MonkeyPatch, flags: str, unit: str, bfloat16: bool) -> None:
    says(monkeypatch, f"processor : 0\nflags\t\t: {flags}\n")
    assert processor.vector_unit() == unit
    assert processor.multiplies_bfloat16() is bfloat16


def test_a_processor_that_says_nothing_is_taken_at_vllms_word(monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, "Processor : AArch64 Processor rev 4\nFeatures : asimd\n")
    assert processor.vector_unit() == ""
    assert processor.multiplies_bfloat16()


def test_a_system_without_that_file_is_taken_at_vllms_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    assert processor.features() == set()
    assert processor.multiplies_bfloat16()
