"""The CPU features that decide which kernels a runtime picks."""

from __future__ import annotations

from collections.abc import Iterable

_FOR_KERNELS = (
    # ARM: vectors; half precision; dot products and matrix products of int8; bfloat16; SVE.
    *("neon", "asimd", "fphp", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2", "sme"),
    # x86, likewise.
    *("sse4_1", "avx", "f16c", "fma", "avx2", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni"),
    *("avx512vbmi", "gfni", "avx512_fp16", "avx512_bf16", "avx_vnni_int8", "amx_int8"),
)
"""As the kernel calls them. XNNPACK and ruy ask for these when they choose."""


def features_for_kernels(features: Iterable[str]) -> tuple[str, ...]:
    """Return those of a CPU's features by which the runtimes choose kernels, oldest first."""
    present = set(features)
    return tuple(name for name in _FOR_KERNELS if name in present)
