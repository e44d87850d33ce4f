"""Runs whose inputs are real files and whose figures are made up, for any domain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from documents import run_document
from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument

PROBABILITIES = {"original": [0.7, 0.3], "twin": [0.6, 0.4], "device": [0.2, 0.8]}


def stored_run(
    folder: Path,
    domain: Domain,
    found: Sequence[tuple[Input, Input]],
    deviating: Sequence[Input] = (),
    **fields: Any,
) -> tuple[RunDocument, RunDirectory]:
    """Store inputs as a run does, and return its document and its directory.

    Args:
        folder: the run directory.
        domain: of the inputs.
        found: seed and trigger of each finding.
        deviating: seeds that deviate themselves.
        fields: of the document.

    """
    directory = RunDirectory(folder)
    findings, itself = [], []
    for seed_id, (seed, trigger) in enumerate(found):
        change = domain.space.levels(trigger) - domain.space.levels(seed)
        stored = directory.store_input("findings", seed_id, trigger, domain)
        findings.append(
            _entry(
                seed_id,
                file=stored.path,
                sha256=stored.sha256,
                seed_file=directory.store_input("seeds", seed_id, seed, domain).path,
                distortion={"l2": float(np.linalg.norm(change)), "linf": float(abs(change).max())},
                operators=["gain"],
            )
        )
    for seed_id, seed in enumerate(deviating, len(found)):
        stored = directory.store_input("deviating_seeds", seed_id, seed, domain)
        nothing = {"l2": 0.0, "linf": 0.0, "mean_abs": 0.0, "changed": 0}
        itself.append(_entry(seed_id, file=stored.path, seed_file=stored.path, distortion=nothing))
    fields = {"classes": ["yes", "no"], "pair": {"domain": domain.name}, **fields}
    return run_document(findings=findings, deviating_seeds=itself, **fields), directory


def _entry(seed_id: int, **fields: Any) -> dict[str, Any]:
    return {
        "seed_id": seed_id, "cause": "kernel", "strength": 0.1 + 0.8 / (1 + seed_id),
        "labels": {"original": 0, "twin": 0, "device": 1}, "probabilities": PROBABILITIES,
        **fields,
    }  # fmt: skip


def chirp(sample_rate: int, seconds: float = 0.5, loudness: float = 0.4) -> NDArray[np.int16]:
    """Return a tone that rises from 100 Hz to 0.4 of the sample rate."""
    time = np.arange(int(sample_rate * seconds)) / sample_rate
    phase = 2 * np.pi * (100 * time + (0.4 * sample_rate - 100) * time**2 / (2 * seconds))
    return np.asarray(np.rint(32_767 * loudness * np.sin(phase)), np.int16)


def noisy(wave: NDArray[np.int16], loudness: int, seed: int = 0) -> NDArray[np.int16]:
    """Return a sound with white noise of at most so many PCM steps."""
    noise = np.random.default_rng(seed).integers(-loudness, loudness + 1, len(wave))
    return np.clip(wave + noise, -32_768, 32_767).astype(np.int16)
