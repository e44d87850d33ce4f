"""The float networks that are made of an original: fine-tuned alone, and with a searched block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from edgeflare.repair.architecture.block_localization import (
    block_trials,
    suspicious_neurons,
    suspiciousness,
)
from edgeflare.repair.architecture.block_search import search_block
from edgeflare.repair.architecture.network_blocks import NetworkBlock, network_blocks
from edgeflare.repair.architecture.trained_classifier import (
    LabelledRows,
    Pace,
    TrainedClassifier,
    best_pace,
    everything,
    trained,
)
from edgeflare.repair.labelled_details import BlockFigures, FoundConnection
from edgeflare.repair.repair_candidate import StepProgress

_TRIAL_SHARE = 10
"""A trial of a block takes one in so many steps."""


@dataclass(frozen=True, slots=True)
class LocatedBlocks:
    """What localization says.

    Attributes:
        blocks: what is known of each block.
        located: the block with most of the suspicious neurons.
        best_trial: the block whose trial had the best accuracy.

    """

    blocks: tuple[BlockFigures, ...]
    located: str
    best_trial: str


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """A float network that was trained.

    Attributes:
        content: the network's `.tflite` file.
        connections: what a search kept; none where there was no search.

    """

    content: bytes
    connections: tuple[FoundConnection, ...] = ()


@dataclass(frozen=True)
class FloatCandidates:
    """What trains an original. All candidates have as many batches, at one rate.

    Attributes:
        content: the original's file.
        classifier: the original.
        labelled: what it is trained with.
        steps: batches for each candidate.
        rng_seed: seed of the generator of each candidate.

    """

    content: bytes
    classifier: TrainedClassifier
    labelled: LabelledRows
    steps: int
    rng_seed: int

    @cached_property
    def blocks(self) -> tuple[NetworkBlock, ...]:
        """The blocks of the original; raises as `network_blocks`."""
        return network_blocks(self.classifier.graph)

    @cached_property
    def pace(self) -> Pace:
        """How everything is trained."""
        return best_pace(self.classifier, self.labelled, self.steps, self._new_rng())

    def located(self, suspects: int) -> LocatedBlocks:
        """Return what localization says of the blocks; raises as `suspiciousness`.

        Args:
            suspects: how many of the most suspicious neurons are counted.

        """
        scores = suspiciousness(self.classifier, self.blocks, self.labelled, self._new_rng())
        counts = suspicious_neurons(scores, suspects)
        pace = replace(self.pace, steps=max(1, self.steps // _TRIAL_SHARE))
        trials = block_trials(self.classifier, self.blocks, self.labelled, pace, self.rng_seed)
        figures = tuple(
            BlockFigures(
                name=block.name,
                operators=(block.operators[0], block.operators[-1]),
                neurons=len(scores[block.name]),
                suspicious=counts[block.name],
                trial=trials[block.name],
            )
            for block in self.blocks
        )
        located, best = (max(of, key=of.__getitem__) for of in (counts, trials))
        return LocatedBlocks(figures, located, best)

    def fine_tuned(self, progress: StepProgress) -> TrainedNetwork:
        """Return the original with everything trained: the control."""
        moved = everything(self.classifier.constants)
        after = trained(self.classifier, self.labelled, moved, self.pace, self._new_rng(), progress)
        return TrainedNetwork(self.classifier.written(after))

    def searched(self, block: NetworkBlock, progress: StepProgress) -> TrainedNetwork:
        """Return the original with a block that was searched."""
        found = search_block(
            self.content, block, self.labelled, self.pace, self._new_rng(), progress
        )
        connections = (
            FoundConnection(*edge, name, round(found.shares[edge][name], 4))
            for edge, name in found.connections.items()
        )
        return TrainedNetwork(found.content, tuple(connections))

    def _new_rng(self) -> np.random.Generator:
        """Return a generator of the repair's seed: each candidate has the same draws of its own."""
        return np.random.default_rng(self.rng_seed)
