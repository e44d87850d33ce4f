"""The transforms of audiomentations, with parameters that come from the caller's generator.

The library draws parameters from Python's and numpy's global generators when a transform is called.
Here they are drawn by the operators and frozen, so that it draws none. It is imported by the first
operator that needs it, since that takes more than a second.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.operator_registry import OperatorError

Wave = NDArray[np.int16]
"""An input of the domain `audio`: (samples,), int16, mono PCM."""

SAMPLE_RATE = 16_000
"""Hz, to which the times and frequencies of all operators refer."""

FULL_SCALE = 32_768.0
"""PCM steps of a wave of 1.0."""


def audio_library() -> ModuleType:
    """Return audiomentations.

    Raises:
        OperatorError: it is not installed.

    """
    try:
        import audiomentations  # noqa: PLC0415  # its import takes more than a second
    except ImportError as error:
        raise OperatorError(
            f"operators on sounds need audiomentations, which cannot be imported ({error}): "
            "pip install 'edgeflare[audio]'"
        ) from error
    return audiomentations  # type: ignore[no-any-return]


def transformed(wave: Wave, transform: str, **parameters: Any) -> Wave:
    """Return what a transform of the library makes of a wave: a new one of the same length.

    Args:
        wave: (samples,), int16.
        transform: the name of the transform's class.
        parameters: what the transform would draw. All of them: nothing else is random then.

    Raises:
        OperatorError: the library is not installed.

    """
    made = getattr(audio_library(), transform)(p=1.0)
    made.parameters = {"should_apply": True, **parameters}
    made.freeze_parameters()
    samples = np.ascontiguousarray(wave, np.float32) / np.float32(FULL_SCALE)
    return pcm(np.asarray(made(samples, SAMPLE_RATE), np.float64) * FULL_SCALE)


def pcm(real: NDArray[np.float64]) -> Wave:
    """Round to the nearest PCM step and clip to what int16 holds."""
    return np.clip(np.rint(real), -32_768, 32_767).astype(np.int16)
