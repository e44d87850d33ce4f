"""Fresh inputs, that nobody searched for: how many deviate before and after the repair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.seeds import Seeds, is_labelled
from edgeflare.repair.shifts.repair_samples import Labels, Samples
from edgeflare.repair.shifts.run_to_repair import ARMS, RunToRepair
from edgeflare.repair.shifts.training_inputs import Repair

_AT_ONCE = 2048


@dataclass(frozen=True, slots=True)
class FreshInputs:
    """Fresh inputs on which original and device answered.

    Attributes:
        path: the file or folder that holds them.
        samples: the answers.
        original_tied: (k,) bool, whether the original has a tie.
        labels: (k,) the true labels, or None; one outside 0 … classes - 1 means unknown.
        failed: number of inputs left out, since original or device gave no answer.

    """

    path: Path
    samples: Samples
    original_tied: NDArray[np.bool_]
    labels: Labels | None
    failed: int

    def before(self) -> FreshCounts:
        """Return the counts of the compressed model before any repair."""
        return self.after(lambda samples: samples.raw)

    def after(self, scores: Callable[[Samples], NDArray[np.generic]]) -> FreshCounts:
        """Return the counts of a repairer that changes raw outputs."""
        raw = scores(self.samples)
        tied = (raw == raw.max(axis=1, keepdims=True)).sum(axis=1) > 1
        labels = raw.argmax(axis=1)
        deviate = labels != self.samples.originals
        return FreshCounts(
            int(deviate.sum()),
            int((deviate & ~tied & ~self.original_tied).sum()),
            self._accuracy(labels),
        )

    def after_labels(self, repair: Repair) -> FreshCounts:
        """Return the counts of a repairer that returns labels only, so it has no ties."""
        labels = repair(self.samples)
        deviate = labels != self.samples.originals
        strict = int((deviate & ~self.original_tied).sum())
        return FreshCounts(int(deviate.sum()), strict, self._accuracy(labels))

    def _accuracy(self, labels: Labels) -> float | None:
        if self.labels is None:
            return None
        known = is_labelled(self.labels, self.samples.raw.shape[1])
        return float((labels == self.labels)[known].mean()) if known.any() else None


@dataclass(frozen=True, slots=True)
class FreshCounts:
    """How many fresh inputs deviate, and how accurate the model is on them.

    Attributes:
        deviations: inputs whose label is not the original's.
        strict: those of them without a tie in original or device.
        accuracy: share of true labels among labelled inputs; None where there are none.

    """

    deviations: int
    strict: int
    accuracy: float | None


def load_fresh(run: RunToRepair, path: Path) -> Seeds:
    """Load all inputs of a file or folder.

    Raises:
        UserError: the file or folder cannot be read as seeds.

    """
    return run.opened.inputs.load(path)


def ask_fresh(
    run: RunToRepair, path: Path, inputs: Seeds, progress: Callable[[int, int], None]
) -> FreshInputs:
    """Ask original and device about all inputs of a file or folder, as `load_fresh` returns them.

    Raises:
        InfrastructureError: a device or a worker process is lost for good.

    """
    answered: list[EvaluatedQuery] = []
    for at in range(0, len(inputs), _AT_ONCE):
        progress(at, len(inputs))
        part = inputs.inputs[at : at + _AT_ONCE]
        answered += run.ask(list(part), range(at, at + len(part)))
    progress(len(inputs), len(inputs))
    good = [
        at
        for at, one in enumerate(answered)
        if all(one.outcome[arm].decision is not None for arm in ARMS)
    ]
    kept = [answered[at] for at in good]
    samples = run.samples(kept, good, np.zeros(len(good), np.int64))
    tied = np.array([one.outcome[Arm.ORIGINAL].tied for one in kept], bool)
    labels = None if inputs.labels is None else inputs.labels[good]
    return FreshInputs(path, samples, tied, labels, len(inputs) - len(good))
