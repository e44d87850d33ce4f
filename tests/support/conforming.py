"""Rounds of a conformance run on arms that compute exactly, and models to be run in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import FRESH, DraftNode
from edgeflare.conform.drafts.uniform_drawing import UniformDrawing
from edgeflare.conform.execution.kernel_arm import KernelArm
from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.record.conform_request import ConformRequest
from edgeflare.conform.rounds.conform_rounds import ConformRounds
from edgeflare.conform.specification.settings import Setting
from exact_arm import ExactArm, PlantedFault

ADD, SUM = ("ADD", "int8"), ("SUM", "int8")

CLAMPED = PlantedFault("ADD", lambda settings: settings["activation"] == "RELU6")
"""A fused activation that makes all values of an ADD wrong."""

HUNG = PlantedFault("SUM", lambda settings: settings["keep_dims"] is True, failure="hang")
"""A SUM that hangs if it keeps dimensions."""


@dataclass
class SeenProgress:
    """An observer of rounds that remembers.

    Attributes:
        rounds: models, covered cells, cells, and failing findings after each round.
        shrunk: findings that were shrunk and findings, whenever it was told.

    """

    rounds: list[tuple[int, int, int, int]] = field(default_factory=list)
    shrinking: list[tuple[int, int]] = field(default_factory=list)

    def conformed(self, models: int, cells: tuple[int, int], failing: int) -> None:
        """Remember a round."""
        self.rounds.append((models, *cells, failing))

    def shrunk(self, done: int, total: int) -> None:
        """Remember how far shrinking is."""
        self.shrinking.append((done, total))


def faulty_arms(*faults: PlantedFault) -> tuple[ExactArm, ExactArm]:
    """Return a device with faults, and its twin without any."""
    return ExactArm("device", faults), ExactArm("xnnpack")


@contextmanager
def conforming(
    folder: Path, arms: Sequence[KernelArm], cells: Sequence[Cell] = (ADD,), rng_seed: int = 0
) -> Iterator[tuple[ConformRounds, UniformDrawing]]:
    """Begin rounds, or go on with those of the folder's journal; and what draws their models."""
    path = folder / "conform.db"
    header = a_header(cells, rng_seed)
    journal = ConformJournal.reopen(path) if path.exists() else None
    journal = journal or ConformJournal.create(path, header.to_json())
    coverage = Coverage(cells)
    rounds = ConformRounds(arms, coverage, journal, {}, rng_seed, SeenProgress())
    try:
        yield rounds, UniformDrawing(coverage, np.random.default_rng(rng_seed))
    finally:
        journal.close()


def a_header(cells: Sequence[Cell] = (ADD,), rng_seed: int = 0) -> ConformHeader:
    """Return the header of a run on the device "board"."""
    device = {
        "name": "board",
        "machine": "aarch64",
        "soc": "BCM2711",
        "cpu_features": ["asimd", "fp"],
        "runtime": "tflite-runtime",
        "runtime_version": "2.14.0",
        "kernels": "builtin",
        "threads": 1,
        "delegate": None,
        "adapter": None,
        "precision": None,
        "fallback": None,
    }
    request = ConformRequest(tuple(cells), "uniform", False, 96, None, rng_seed)
    host = {
        "machine": "x86_64",
        "cpu_features": ["avx", "avx2"],
        "runtime": "ai-edge-litert",
        "runtime_version": "2.3.0",
        "original_runtime": None,
        "libraries": {"numpy": "2.2.0", "opencv": "4.11.0"},
    }
    return ConformHeader("0.1.0", request, device, host, "abc")


def an_addition(source: int = FRESH, other: int = FRESH, **changed: Setting) -> DraftNode:
    """Return an ADD of int8 that has all its settings at their simplest but for some."""
    settings: dict[str, Setting] = {
        "shape": (2, 3),
        "first_broadcast": "none",
        "second_broadcast": "none",
        "constant": "none",
        "activation": "NONE",
        "first_scale": 1.0,
        "first_zero_point": 0,
        "second_scale": 1.0,
        "second_zero_point": 0,
        "output_scale": 1.0,
        "output_zero_point": 0,
    }
    return DraftNode(*ADD, {**settings, **changed}, 7, (source, other))
