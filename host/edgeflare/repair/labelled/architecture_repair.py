"""The repair of a float original by labels, before it is compressed: ArchRepair, and its control.

Three fifths of the seeds train, one chooses and one judges, with the inputs of `--test`. The
control is the same network, of which everything is fine-tuned with as many batches. What is made of
either is compressed as the compressed model of the pair was, and judged by what it decides then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.models.tflite_graph import Graph
from edgeflare.pages.facts import count_of
from edgeflare.repair.architecture.block_search import require_steps
from edgeflare.repair.architecture.float_candidates import (
    FloatCandidates,
    TrainedNetwork,
)
from edgeflare.repair.architecture.trained_classifier import (
    BATCH,
    LabelledRows,
    TrainedClassifier,
)
from edgeflare.repair.candidate_check import CandidateCheck
from edgeflare.repair.fitting.float_model import RewritingFailed
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import compressed_as, computes_in_8_bits
from edgeflare.repair.judging.candidate_model import CandidateModel, open_candidate
from edgeflare.repair.judging.judgement import Change, accuracy_change, figures
from edgeflare.repair.judging.judgement_inputs import PARTS, JudgedSet, Labels, decisions
from edgeflare.repair.labelled.labelled_repair import (
    LabelledCandidate,
    LabelledRepair,
    each_made,
    surely_right,
)
from edgeflare.repair.labelled_details import (
    BEFORE,
    CHOOSE,
    JUDGE,
    PLAIN,
    Accuracy,
    ArchitectureRepair,
    ArchitectureRow,
    CompressedOnDevice,
    FoundConnection,
)
from edgeflare.repair.repair_candidate import RepairCandidate, ReportProgress, StepProgress
from edgeflare.repair.repair_document import RepairDocument, TriedCandidate
from edgeflare.repair.repair_output import ORIGINAL
from edgeflare.statistics.binomial import surely_more

STEPS: Final = 200
"""Batches that each candidate is trained with, unless another number is asked for."""

SUSPECTS: Final = 50
"""The most suspicious neurons that are counted, unless another number is asked for."""

LEAST_SEEDS: Final = 2 * BATCH * PARTS // 3 + 1
"""Two batches to train with: one for weights, and one to compare operators by."""

_CALIBRATING = 500
"""Seeds to fit with by which a network is compressed, at most."""

_FOUND = "archrepair"

_Both = tuple[Sequence[Answer], Sequence[Answer]]
"""What a float model and its compressed form answer to a part of the inputs."""


class ArchitectureSearch(LabelledRepair[_Both]):
    """The original of a pair, of which a block is searched, and the original fine-tuned alone.

    What is seen of a candidate are the answers of the float model and of its compressed form. The
    original is a float `.tflite` file with a gradient and a block, and the compressed model holds 8
    bits.
    """

    why_none: ClassVar[str] = "no candidate is within the limits"
    _change: Change | None = None

    @property
    def plan(self) -> str:
        """How many blocks there are, and how long each candidate is trained."""
        return (
            f"Blocks of the original: {len(self._candidates.blocks)}, of which at most two are"
            " located and searched; beside them plain fine-tuning,"
            f" {self._candidates.steps} batches of {BATCH} each"
        )

    def require_pair(self) -> None:
        """Refuse a budget that ends too early, and what is no float classifier."""
        require_steps(self._steps)
        pair = self.pair
        if self._path.suffix.lower() != ".tflite":
            raise UserError(
                f"--method archrepair trains the original, and {pair.original} is no .tflite file:"
                " name a float .tflite model as the original"
            )
        if pair.interface.task != DEFAULT_TASK:
            raise UserError(
                f"--method archrepair trains classifiers by labels, and {pair.name} is of the task"
                f" {pair.interface.task}: leave --method away, and other methods are tried"
            )

    def require_seeds(self, count: int) -> None:
        """Refuse fewer than two batches, and another compression, before labels are looked at."""
        computes_in_8_bits(Graph(self._compressed, "the compressed model"))
        if count < LEAST_SEEDS:
            raise UserError(
                f"{self.pair.name} has {count_of(count, 'seed')}, and --method archrepair needs at"
                f" least {LEAST_SEEDS}, of which three fifths are two batches of {BATCH} to train"
                " with: give more seeds"
            )

    def prepare(self) -> None:
        """Translate the original, and encode the seeds to train with."""
        content = read_model_file(self._path)
        classifier = TrainedClassifier(content, str(self._path))
        ids = [self.opened.seeds.seed_ids[place] for place in self.split.fit.tolist()]
        inputs = np.asarray(self.opened.seeds.inputs)[self.split.fit]
        rows = self.opened.panel.rows(Arm.ORIGINAL, inputs, ids)
        labelled = LabelledRows(rows, self.labels[self.split.fit])
        self._candidates = FloatCandidates(
            content, classifier, labelled, self._steps, self.request.rng_seed
        )

    def candidates(self, progress: ReportProgress) -> list[LabelledCandidate[_Both]]:
        """Locate blocks, train, and compress what comes of it."""
        progress("blocks", 0, 1)
        blocks = self._blocks = self._candidates.located(self._suspects)
        makers: dict[str, Callable[[StepProgress], TrainedNetwork]] = {
            PLAIN: self._candidates.fine_tuned,
            **{
                f"{_FOUND}-{block.name.replace(' ', '-')}": partial(
                    self._candidates.searched, block
                )
                for block in self._candidates.blocks
                if block.name in (blocks.located, blocks.best_trial)
            },
        }
        self._connections: dict[str, tuple[FoundConnection, ...]] = {}
        found = []
        for tried, network in each_made(makers, progress):
            self._connections[tried.name] = network.connections
            found.append(self._compressed_again(tried, network.content))
        return found

    def before(self) -> dict[str, _Both]:
        """Return what the pair answers."""
        return self._answers(self._candidates.content, self._compressed)

    def choice(self, evidence: Mapping[str, _Both]) -> str | None:
        """Return "plain", unless another one's compressed form is surely right more often."""
        labels = self.parts[CHOOSE][1]
        return surely_right(
            {name: _right(both[1], labels) for name, both in evidence.items() if name != BEFORE}
        )

    def verdict(
        self, before: Mapping[str, _Both], after: Mapping[str, _Both], name: str
    ) -> tuple[bool, str]:
        """Say whether the accuracy of the compressed model surely rises."""
        labels = np.concatenate([self.parts[part][1] for part in self.held_out])
        sides = [
            [[answer for part in self.held_out for answer in of[part][arm]] for arm in (0, 1)]
            for of in (before, after)
        ]
        old, new = (float(_right(side[1], labels).mean()) for side in sides)
        deviating = [sum(f.differs(g) for f, g in zip(*side, strict=True)) for side in sides]
        said = (
            f"on {len(labels):,} held-out inputs the compressed model of {name} has"
            f" {new:.2%} right instead of {old:.2%}, and {deviating[1]:,} instead of"
            f" {deviating[0]:,} deviate from its own original"
        )
        change = self._change = accuracy_change(labels, sides[0][1], sides[1][1])
        if surely_more(change.mended, change.broken):
            return True, said
        return False, f"accuracy does not surely rise: {said}"

    def described(
        self,
        document: RepairDocument,
        evidence: Mapping[str, Mapping[str, _Both]],
        on_devices: Mapping[str, _Both],
    ) -> RepairDocument:
        """Return the document with the blocks, and the accuracy of each."""
        repair = ArchitectureRepair(
            steps=self._candidates.steps,
            rate=self._candidates.pace.rate,
            suspects=self._suspects,
            blocks=self._blocks.blocks,
            located=self._blocks.located,
            best_trial=self._blocks.best_trial,
            rows=tuple(
                ArchitectureRow.of(
                    name,
                    {part: self._accuracy(part, both) for part, both in of.items()},
                    connections=self._connections.get(name, ()),
                )
                for name, of in evidence.items()
            ),
            change=self._change,
            devices=tuple(
                CompressedOnDevice(device=device, judge=self._accuracy(JUDGE, both).compressed)
                for device, both in on_devices.items()
            ),
            original=ORIGINAL if document.written else None,
        )
        return structs.replace(document, architecture=repair)

    def seen_on(self, device: CandidateModel, on_host: _Both) -> _Both:
        """Return its answers beside those of the float model on the host."""
        inputs = self.parts[JUDGE][0]
        return on_host[0], self.answers(device, inputs)

    def lost(self, before: _Both, after: _Both) -> str | None:
        """Compare how many inputs the compressed model is right on."""
        labels = self.parts[JUDGE][1]
        old, new = (int(_right(both[1], labels).sum()) for both in (before, after))
        said = f"{new:,} of {len(labels):,} seeds that judge are right instead of {old:,}"
        return said if new < old else None

    @property
    def _steps(self) -> int:
        return STEPS if self.request.steps is None else self.request.steps

    @property
    def _suspects(self) -> int:
        return SUSPECTS if self.request.suspects is None else self.request.suspects

    @property
    def _path(self) -> Path:
        return Path(str(self.pair.original))

    @property
    def _compressed(self) -> bytes:
        return read_model_file(self.pair.compressed)

    def _compressed_again(self, tried: TriedCandidate, original: bytes) -> LabelledCandidate[_Both]:
        """Compress a float model, and look at what that costs and answers."""
        rows = self._candidates.labelled.rows[:_CALIBRATING]
        try:
            made = compressed_as(self._compressed, QuantizedNetwork(original, original, rows, rows))
        except RewritingFailed as failed:
            return LabelledCandidate(structs.replace(tried, set_aside=str(failed)), None, None)
        candidate = RepairCandidate(
            tried.name, made.content, made.recipe, files={ORIGINAL: original}
        )
        tried = structs.replace(tried, size_bytes=len(made.content))
        check = CandidateCheck(self.opened, self.request, self._seeds(self.split.choose))
        if (fault := check.fault(candidate)) is not None:
            return LabelledCandidate(structs.replace(tried, set_aside=fault), None, None)
        latency = check.known_latency(candidate, ())
        if latency is None:
            latency = check.measured(candidate, self.request.latency_limit)
        tried = check.held(candidate, tried, latency)
        answers = self._answers(original, candidate.content)
        return LabelledCandidate(tried, None if tried.needs else candidate, answers)

    def _seeds(self, places: NDArray[np.int64]) -> JudgedSet:
        ids = np.array(self.opened.seeds.seed_ids, np.int64)[places]
        return JudgedSet(np.asarray(self.opened.seeds.inputs)[places], ids, None, (), ())

    def _answers(self, original: bytes, compressed: bytes) -> dict[str, _Both]:
        """Return what a float model and its compressed form answer, by part of the inputs."""
        sides = []
        for content in (original, compressed):
            with open_candidate(content, self.opened) as model:
                sides.append(
                    {part: self.answers(model, inputs) for part, (inputs, _) in self.parts.items()}
                )
        return {part: (sides[0][part], sides[1][part]) for part in self.parts}

    def _accuracy(self, part: str, both: _Both) -> Accuracy:
        labels = self.parts[part][1]
        right = int(_right(both[0], labels).sum())
        return Accuracy(right=right, compressed=figures(*both, labels))


def _right(answers: Sequence[Answer], labels: Labels) -> NDArray[np.bool_]:
    return np.asarray(decisions(answers) == labels)
