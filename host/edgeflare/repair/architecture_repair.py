"""The repair of a float original by labels, before it is compressed: ArchRepair, and its control.

Three fifths of the seeds train, one chooses and one judges, with the inputs of `--test`. The
control is the same network, of which everything is fine-tuned with as many batches. What is made of
either is compressed as the compressed model of the pair was, and judged by what it decides then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.devices.device import Device
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.architecture.block_search import require_steps
from edgeflare.repair.architecture.float_candidates import FloatCandidates, TrainedNetwork
from edgeflare.repair.architecture.trained_classifier import (
    BATCH,
    LabelledRows,
    TrainedClassifier,
)
from edgeflare.repair.architecture_details import (
    Accuracy,
    ArchitectureRepair,
    ArchitectureRow,
    CompressedOnDevice,
    FoundConnection,
)
from edgeflare.repair.candidate_check import CandidateCheck, needed
from edgeflare.repair.device_judgement import opened_on
from edgeflare.repair.fitting.float_model import RewritingFailed
from edgeflare.repair.fitting.quantizer import compressed_as, computes_in_8_bits
from edgeflare.repair.judging.candidate_model import open_candidate
from edgeflare.repair.judging.judgement import Change, accuracy_change, figures
from edgeflare.repair.judging.judgement_inputs import (
    FRESH,
    PARTS,
    JudgedSet,
    Labels,
    SeedSplit,
    decisions,
    split_seeds,
    true_labels,
)
from edgeflare.repair.labelled_repair import (
    BEFORE,
    CHOOSE,
    JUDGE,
    PLAIN,
    LabelledInputs,
    any_seed_ids,
    chosen_candidate,
    labelled_document,
    labelled_parts,
)
from edgeflare.repair.repair_candidate import RepairCandidate, ReportProgress, StepProgress
from edgeflare.repair.repair_document import TriedCandidate
from edgeflare.repair.repair_output import ORIGINAL
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_run import RepairOutcome, repair_plan
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

_Answers = Mapping[str, tuple[Sequence[Answer], Sequence[Answer]]]
"""What a float model and its compressed form answer, by part of the inputs."""


def repair_architecture(
    pair: Pair, profiles: Sequence[Profile], request: RepairRequest, progress: ReportProgress
) -> RepairOutcome:
    """Search a block of a pair's original, and fine-tune the original alone beside it.

    Args:
        pair: a classifier with one input, whose seeds have labels.
        profiles: the devices.
        request: the settings.
        progress: is called as the steps go on.

    Raises:
        UserError: seeds are too few or without labels, the original is no float `.tflite` file, has
            an operator without a gradient or no block, the compressed model holds no 8 bits, or the
            budget ends before the first step.

    """
    with ExitStack() as stack:
        return _opened(pair, profiles, request, stack).outcome(progress)


def planned_architecture(pair: Pair, profiles: Sequence[Profile], request: RepairRequest) -> str:
    """Open models and devices, and say in a sentence what `repair_architecture` would do.

    Args: as of `repair_architecture`.

    Raises:
        UserError: as by `repair_architecture`, before anything is trained.

    """
    with ExitStack() as stack:
        repair = _opened(pair, profiles, request, stack)
    names = ", ".join(profile.name for profile in profiles)
    return (
        f"{repair.split.sizes}. Blocks of the original: {len(repair.candidates.blocks)}, of which"
        " at most two are located and searched; beside them plain fine-tuning,"
        f" {repair.candidates.steps} batches of {BATCH} each;"
        f" on {names}."
    )


def _opened(
    pair: Pair, profiles: Sequence[Profile], request: RepairRequest, stack: ExitStack
) -> _Repair:
    """Open a pair, and refuse what cannot be trained or judged."""
    steps = STEPS if request.steps is None else request.steps
    require_steps(steps)
    original = Path(str(pair.original))
    if original.suffix.lower() != ".tflite":
        raise UserError(
            f"--method archrepair trains the original, and {pair.original} is no .tflite file: name"
            " a float .tflite model as the original"
        )
    if pair.interface.task != DEFAULT_TASK:
        raise UserError(
            f"--method archrepair trains classifiers by labels, and {pair.name} is of the task"
            f" {pair.interface.task}: leave --method away, and other methods are tried"
        )
    opened = open_pair(pair, repair_plan(None, profiles, request.limit), profiles, stack)
    computes_in_8_bits(Graph(read_model_file(pair.compressed), "the compressed model"))
    count = len(opened.seeds)
    if count < LEAST_SEEDS:
        raise UserError(
            f"{pair.name} has {count} seeds, and --method archrepair needs at least {LEAST_SEEDS},"
            f" of which three fifths are two batches of {BATCH} to train with: give more seeds"
        )
    labels = true_labels(opened, opened.seeds)
    content = read_model_file(original)
    classifier = TrainedClassifier(content, str(original))
    split = split_seeds(labels, np.random.default_rng(request.rng_seed))
    judged = labelled_parts(opened, request, labels, {CHOOSE: split.choose, JUDGE: split.judge})
    ids = [opened.seeds.seed_ids[place] for place in split.fit.tolist()]
    rows = opened.panel.rows(Arm.ORIGINAL, np.asarray(opened.seeds.inputs)[split.fit], ids)
    return _Repair(
        opened,
        request,
        split,
        FloatCandidates(
            content, classifier, LabelledRows(rows, labels[split.fit]), steps, request.rng_seed
        ),
        judged,
    )


@dataclass(frozen=True, slots=True)
class _Made:
    """A candidate that was made.

    Attributes:
        tried: what came of it.
        candidate: the compressed model, the float one beside it; None where it may not be chosen.
        answers: what both answer; None where it was not judged.
        connections: what a search kept.

    """

    tried: TriedCandidate
    candidate: RepairCandidate | None
    answers: _Answers | None
    connections: tuple[FoundConnection, ...]


@dataclass(frozen=True, slots=True)
class _Repair:
    """What candidates are made of, and what judges them.

    Attributes:
        opened: the pair and its devices.
        request: the settings.
        split: the parts of the seeds.
        candidates: what makes the float models.
        judged: the inputs that choose, those that judge and those of `--test`, if any, by part.

    """

    opened: OpenedPair
    request: RepairRequest
    split: SeedSplit
    candidates: FloatCandidates
    judged: Mapping[str, LabelledInputs]

    @property
    def _suspects(self) -> int:
        return SUSPECTS if self.request.suspects is None else self.request.suspects

    def outcome(self, progress: ReportProgress) -> RepairOutcome:
        """Locate blocks, make candidates, choose one and judge it."""
        progress("blocks", 0, 1)
        blocks = self.candidates.located(self._suspects)
        makers: dict[str, Callable[[StepProgress], TrainedNetwork]] = {
            PLAIN: self.candidates.fine_tuned,
            **{
                f"{_FOUND}-{block.name.replace(' ', '-')}": partial(self.candidates.searched, block)
                for block in self.candidates.blocks
                if block.name in (blocks.located, blocks.best_trial)
            },
        }
        made = []
        for number, (name, make) in enumerate(makers.items()):
            progress("candidates", number, len(makers))
            made.append(self._tried(name, make, partial(progress, name)))
        progress("candidates", len(makers), len(makers))
        before = self._answers(
            self.candidates.content, read_model_file(self.opened.pair.compressed)
        )
        chosen = chosen_candidate(self._choices(made))
        best = next((each for each in made if each.tried.name == chosen), None)
        change, gains, why = self._verdict(before, best)
        written = best if gains else None
        rows = [self._row(BEFORE, before, ())]
        rows += [
            self._row(each.tried.name, each.answers, each.connections)
            for each in made
            if each.answers is not None
        ]
        repair = ArchitectureRepair(
            steps=self.candidates.steps,
            rate=self.candidates.pace.rate,
            suspects=self._suspects,
            blocks=blocks.blocks,
            located=blocks.located,
            best_trial=blocks.best_trial,
            rows=tuple(rows),
            change=change,
            devices=() if written is None else self._on_devices(written),
            original=None if written is None else ORIGINAL,
        )
        document = labelled_document(
            self.opened,
            self.request,
            self.split,
            [each.tried for each in made],
            None if written is None else written.tried.name,
            why,
        )
        return RepairOutcome(
            structs.replace(document, architecture=repair),
            None if written is None else written.candidate,
        )

    def _tried(
        self, name: str, make: Callable[[StepProgress], TrainedNetwork], progress: StepProgress
    ) -> _Made:
        """Make a candidate, compress it, and look at what it costs and answers."""
        begun = monotonic()
        network = make(progress)
        original, connections = network.content, network.connections
        tried = TriedCandidate(name=name, seconds=round(monotonic() - begun, 3))

        def aside(why: str) -> _Made:
            return _Made(structs.replace(tried, set_aside=why), None, None, connections)

        before = read_model_file(self.opened.pair.compressed)
        try:
            made = compressed_as(before, original, self.candidates.labelled.rows[:_CALIBRATING])
        except RewritingFailed as failed:
            return aside(str(failed))
        candidate = RepairCandidate(name, made.content, made.recipe, files={ORIGINAL: original})
        tried = structs.replace(tried, bytes=len(made.content))
        check = CandidateCheck(self.opened, self.request, self._seeds(self.split.choose))
        if (fault := check.fault(candidate)) is not None:
            return aside(fault)
        latency, ratio = check.cost(candidate)
        needs = check.needs(candidate, latency)
        tried = structs.replace(
            tried, latency=latency, latency_ratio=ratio, needs=needs, set_aside=needed(needs)
        )
        answers = self._answers(original, candidate.content)
        return _Made(tried, None if needs else candidate, answers, connections)

    def _seeds(self, places: NDArray[np.int64]) -> JudgedSet:
        ids = np.array(self.opened.seeds.seed_ids, np.int64)[places]
        return JudgedSet(np.asarray(self.opened.seeds.inputs)[places], ids, None, (), ())

    def _answers(self, original: bytes, compressed: bytes) -> _Answers:
        """Return what a float model and its compressed form answer, by part of the inputs."""
        sides = []
        for content in (original, compressed):
            with open_candidate(content, self.opened) as model:
                sides.append(
                    {
                        part: model.answers(inputs, any_seed_ids(self.opened, len(inputs)))
                        for part, (inputs, _) in self.judged.items()
                    }
                )
        return {part: (sides[0][part], sides[1][part]) for part in self.judged}

    def _row(
        self, name: str, answers: _Answers, connections: tuple[FoundConnection, ...]
    ) -> ArchitectureRow:
        by_part = {
            part: Accuracy(
                right=int(sum(_right(original, self.judged[part][1]))),
                compressed=figures(original, compressed, self.judged[part][1]),
            )
            for part, (original, compressed) in answers.items()
        }
        return ArchitectureRow(
            name=name,
            connections=connections,
            choose=by_part[CHOOSE],
            judge=by_part[JUDGE],
            fresh=by_part.get(FRESH),
        )

    def _choices(self, made: Sequence[_Made]) -> dict[str, NDArray[np.bool_]]:
        """Return where the candidates within the limits are right on the seeds that choose."""
        labels = self.judged[CHOOSE][1]
        return {
            each.tried.name: _right(each.answers[CHOOSE][1], labels)
            for each in made
            if each.candidate is not None and each.answers is not None
        }

    def _verdict(self, before: _Answers, best: _Made | None) -> tuple[Change | None, bool, str]:
        """Say whether the chosen candidate is to be written, by inputs that did not choose."""
        if best is None or best.answers is None:
            return None, False, "no candidate is within the limits"
        held_out = [part for part in self.judged if part != CHOOSE]
        labels = np.concatenate([self.judged[part][1] for part in held_out])
        sides = [
            [[answer for part in held_out for answer in of[part][arm]] for arm in (0, 1)]
            for of in (before, best.answers)
        ]
        change = accuracy_change(labels, sides[0][1], sides[1][1])
        old, new = (float(_right(side[1], labels).mean()) for side in sides)
        deviating = [sum(f.differs(g) for f, g in zip(*side, strict=True)) for side in sides]
        said = (
            f"on {len(labels):,} held-out inputs the compressed model of {best.tried.name} has"
            f" {new:.2%} right instead of {old:.2%}, and {deviating[1]:,} instead of"
            f" {deviating[0]:,} deviate from its own original"
        )
        if not surely_more(change.mended, change.broken):
            return change, False, f"accuracy does not surely rise: {said}"
        return change, True, said

    def _on_devices(self, best: _Made) -> tuple[CompressedOnDevice, ...]:
        return tuple(self._on(device, best) for device in self.opened.devices)

    def _on(self, device: Device, best: _Made) -> CompressedOnDevice:
        assert best.candidate is not None and best.answers is not None  # noqa: S101, PT018 - chosen
        inputs, labels = self.judged[JUDGE]
        with opened_on(device, best.candidate.content, self.opened) as (_, there):
            answers = there.answers(inputs, any_seed_ids(self.opened, len(inputs)))
        return CompressedOnDevice(
            device=device.profile.name, judge=figures(best.answers[JUDGE][0], answers, labels)
        )


def _right(answers: Sequence[Answer], labels: Labels) -> NDArray[np.bool_]:
    return np.asarray(decisions(answers) == labels)
