"""The repair of a classifier by checkpoints of its training: DARE, and plain training beside it.

Three fifths of the seeds tune, one chooses and one judges, with the inputs of `--test`. As in the
paper (§4.2.3) the original is attacked, and what counts is how often candidates give the true label
to the attacked inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.query import Arm
from edgeflare.devices.device import Device
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.repair.device_judgement import opened_on
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.judging.candidate_model import CandidateModel, open_candidate
from edgeflare.repair.judging.judgement_inputs import (
    FRESH,
    Labels,
    SeedSplit,
    decisions,
    split_seeds,
    true_labels,
)
from edgeflare.repair.judging.robustness import (
    RADIUS,
    CheckpointOnDevice,
    CheckpointRepair,
    CheckpointRow,
    RightUnderAttack,
    TeachingCheckpoint,
    attacked_inputs,
)
from edgeflare.repair.labelled_repair import (
    BEFORE,
    CHOOSE,
    JUDGE,
    MOST_LOST,
    MOST_LOST_CHOSEN,
    PLAIN,
    LabelledInputs,
    any_seed_ids,
    chosen_candidate,
    labelled_document,
    labelled_parts,
    made_candidates,
)
from edgeflare.repair.post_training.dare import (
    TaughtRows,
    fine_tuned,
    layer_before_last,
    taught_rows,
    tuned_towards,
)
from edgeflare.repair.repair_candidate import RepairCandidate, ReportProgress, StepProgress
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_requirements import require_seeds
from edgeflare.repair.repair_run import RepairOutcome, repair_plan
from edgeflare.statistics.binomial import surely_more

_MOST_ROWS = 10_000
"""Seeds to tune with, at most."""

_MOST_ATTACKED = 500
"""Inputs of a part that are attacked, at most: PGD takes some 40 ms for each of LeNet-4."""

_CANDIDATES: Final = "dare", "dare-by-labels", PLAIN

_Decided = Mapping[str, Mapping[str, NDArray[np.bool_]]]
"""Where a model is right: by part of the inputs, and by attack; "all" for all of the part."""

_ALL = "all"


def repair_by_checkpoints(
    pair: Pair, profiles: Sequence[Profile], request: RepairRequest, progress: ReportProgress
) -> RepairOutcome:
    """Tune the compressed model of a pair by checkpoints of the original's training.

    Args:
        pair: a classifier with one input, whose seeds have labels.
        profiles: the devices, on which the chosen candidate is judged too.
        request: the settings, with the paths of the checkpoints.
        progress: is called as the steps go on.

    Raises:
        UserError: seeds are too few or without labels, checkpoints are of another structure than
            the original, which is a `.tflite` file, or teach nothing, or an operator has no
            gradient.

    """
    with ExitStack() as stack:
        return _opened(pair, profiles, request, stack).outcome(progress)


def planned_by_checkpoints(pair: Pair, profiles: Sequence[Profile], request: RepairRequest) -> str:
    """Open models and devices, and say in a sentence what `repair_by_checkpoints` would do.

    Args: as of `repair_by_checkpoints`.

    Raises:
        UserError: as by `repair_by_checkpoints`, before anything is tuned.

    """
    with ExitStack() as stack:
        repair = _opened(pair, profiles, request, stack)
    names = ", ".join(profile.name for profile in profiles)
    return (
        f"{repair.split.sizes}. Checkpoints: {len(repair.checkpoints)}. Candidates:"
        f" {', '.join(_CANDIDATES)}; on {names}."
    )


def _opened(
    pair: Pair, profiles: Sequence[Profile], request: RepairRequest, stack: ExitStack
) -> _CheckpointTuning:
    """Open a pair, and refuse what cannot be tuned or judged."""
    if pair.interface.task != DEFAULT_TASK:
        raise UserError(
            f"--checkpoints teach classes, and {pair.name} is of the task {pair.interface.task}:"
            " leave them away, and other methods are tried"
        )
    original = Path(str(pair.original))
    if original.suffix.lower() != ".tflite":
        raise UserError(
            f"--checkpoints are compared with the original, and {pair.original} is no .tflite file"
        )
    content = read_model_file(original)
    checkpoints = {file: read_model_file(Path(file)) for file in request.checkpoints}
    for file, checkpoint in checkpoints.items():
        _require_same_structure(Graph(checkpoint, file), Graph(content, str(original)))
    opened = open_pair(pair, repair_plan(None, profiles, request.limit), profiles, stack)
    require_seeds(pair.name, len(opened.seeds))
    labels = true_labels(opened, opened.seeds)
    rng = np.random.default_rng(request.rng_seed)
    split = split_seeds(labels, rng)
    parts = labelled_parts(opened, request, labels, {CHOOSE: split.choose, JUDGE: split.judge})
    fit = split.fit[np.sort(rng.permutation(len(split.fit))[:_MOST_ROWS])]
    inputs, ids = np.asarray(opened.seeds.inputs)[fit], any_seed_ids(opened, len(fit))
    rows, original_rows = (opened.panel.rows(arm, inputs, ids) for arm in (Arm.TWIN, Arm.ORIGINAL))
    network = QuantizedNetwork(read_model_file(pair.compressed), content, rows, original_rows)
    return _CheckpointTuning(opened, request, split, network, labels[fit], checkpoints, parts)


def _require_same_structure(checkpoint: Graph, original: Graph) -> None:
    """Refuse a checkpoint whose operators are not those of the original, in kind and shape."""
    both = checkpoint, original
    sides = [[_form(graph, operator) for operator in graph.operators] for graph in both]
    if sides[0] == sides[1] and checkpoint.inputs == original.inputs:
        return
    counts = [len(side) for side in sides]
    pairs = enumerate(zip(*sides, strict=False))
    other = next((at for at, (one, another) in pairs if one != another), min(counts))
    raise UserError(
        f"--checkpoints {checkpoint.source}: its structure is not that of the original"
        f" {original.source}, from operator {other} on ({counts[0]} and {counts[1]} operators):"
        " give checkpoints of the original's own training, converted as it was"
    )


def _form(graph: Graph, operator: GraphOp) -> tuple[str, list[tuple[tuple[int, ...], str]]]:
    """Return an operator's name, and the shapes and types of what it reads and writes."""
    tensors = [graph.tensors[at] for at in (*operator.inputs, *operator.outputs) if at >= 0]
    return operator.name, [(tensor.shape, tensor.dtype) for tensor in tensors]


@dataclass(frozen=True, slots=True)
class _CheckpointTuning:
    """What candidates are made of, and what judges them.

    Attributes:
        opened: the pair and its devices.
        request: the settings.
        split: the parts of the seeds.
        network: the compressed model, the original and inputs to tune with.
        labels: true labels of these inputs.
        checkpoints: contents of files, by their paths.
        parts: the seeds that choose, those that judge and the inputs of `--test`, if any, by part.

    """

    opened: OpenedPair
    request: RepairRequest
    split: SeedSplit
    network: QuantizedNetwork
    labels: Labels
    checkpoints: Mapping[str, bytes]
    parts: Mapping[str, LabelledInputs]

    def outcome(self, progress: ReportProgress) -> RepairOutcome:
        """Make candidates, choose one and judge it."""
        target = layer_before_last(self.network)
        checkpoints = list(self.checkpoints.values())
        taught = taught_rows(self.network, self.labels, checkpoints, target)
        attacked = self._attacked(progress)
        makers = {name: partial(self._made, name, taught) for name in _CANDIDATES}
        files, tried = made_candidates(makers, progress)
        contents = {BEFORE: self.network.content, **files}
        right = {name: self._right(content, attacked) for name, content in contents.items()}
        chosen = candidate_to_judge({name: of_parts[CHOOSE] for name, of_parts in right.items()})
        written, why = self._verdict(right, chosen)
        counts = np.bincount(taught.teachers + 1, minlength=len(checkpoints) + 1)[1:]
        devices = self.opened.devices if written else ()
        made = CheckpointRepair(
            checkpoints=tuple(
                TeachingCheckpoint(file=file, taught=int(count))
                for file, count in zip(self.checkpoints, counts, strict=True)
            ),
            radius=RADIUS,
            rows=tuple(_row(name, of_parts) for name, of_parts in right.items()),
            devices=tuple(self._on(device, contents[chosen], attacked) for device in devices),
        )
        document = labelled_document(
            self.opened, self.request, self.split, tried, chosen if written else None, why
        )
        document = structs.replace(document, checkpoints=made)
        repaired = RepairCandidate(chosen, contents[chosen], None) if written else None
        return RepairOutcome(document, repaired)

    def _made(self, name: str, taught: TaughtRows, progress: StepProgress) -> bytes:
        """Return the file of a candidate; each has the same generator of its own."""
        network, oracle = self.network, taught.oracle
        rng = np.random.default_rng(self.request.rng_seed)
        if name == PLAIN:
            return fine_tuned(network, network.rows, self.labels, rng, progress)
        if name != _CANDIDATES[0]:
            return fine_tuned(network, oracle.rows, oracle.groups, rng, progress)
        target, percent = layer_before_last(network), self.request.slice
        return tuned_towards(network, target, oracle, self.labels, percent, rng, progress)

    def _attacked(self, progress: ReportProgress) -> dict[str, dict[str, NDArray[np.generic]]]:
        """Return the inputs of each part, and the first of the seeds after each attack."""
        progress("attacks", 0, 1)
        made = {}
        with open_candidate(self.network.original, self.opened) as model:
            for part, (inputs, labels) in self.parts.items():
                some = slice(0 if part == FRESH else _MOST_ATTACKED)
                under = attacked_inputs(model, self.opened, inputs[some], labels[some].tolist())
                made[part] = {_ALL: inputs, **(dict(under) if part != FRESH else {})}
        progress("attacks", 1, 1)
        return made

    def _right(
        self, content: bytes, attacked: Mapping[str, Mapping[str, NDArray[np.generic]]]
    ) -> _Decided:
        """Return where a model is right on the host."""
        with open_candidate(content, self.opened) as model:
            return {part: self._right_on(model, part, sets) for part, sets in attacked.items()}

    def _right_on(
        self, model: CandidateModel, part: str, sets: Mapping[str, NDArray[np.generic]]
    ) -> dict[str, NDArray[np.bool_]]:
        labels = self.parts[part][1]
        return {
            name: decisions(model.answers(inputs, any_seed_ids(self.opened, len(inputs))))
            == labels[: len(inputs)]
            for name, inputs in sets.items()
        }

    def _verdict(self, right: Mapping[str, _Decided], chosen: str) -> tuple[bool, str]:
        """Say whether the chosen candidate is to be written, by inputs that did not choose."""
        if chosen == BEFORE:
            return False, "every candidate loses more than half a point on the seeds that choose"
        before, after = right[BEFORE], right[chosen]
        held_out = [part for part in self.parts if part != CHOOSE]
        old, new = (
            float(np.concatenate([of[part][_ALL] for part in held_out]).mean())
            for of in (before, after)
        )
        stood, stands = (_stands(of[JUDGE]) for of in (before, after))
        said = (
            f"of {len(stood):,} attacked seeds that judge {stands.sum():,} instead of"
            f" {stood.sum():,} are right under every attack with {chosen}, and accuracy on held-out"
            f" inputs is {new:.2%} instead of {old:.2%}"
        )
        if new < old - MOST_LOST:
            return False, f"{chosen} loses more than a point of accuracy: {said}"
        if surely_more(int((stands & ~stood).sum()), int((stood & ~stands).sum())):
            return True, said
        return False, f"{chosen} does not surely stand more attacks: {said}"

    def _on(
        self,
        device: Device,
        content: bytes,
        attacked: Mapping[str, Mapping[str, NDArray[np.generic]]],
    ) -> CheckpointOnDevice:
        with opened_on(device, content, self.opened) as (_, there):
            right = self._right_on(there, JUDGE, attacked[JUDGE])
        return CheckpointOnDevice(device=device.profile.name, judge=_figures(right))


def candidate_to_judge(right: Mapping[str, Mapping[str, NDArray[np.bool_]]]) -> str:
    """Return the candidate to judge; "before" for none.

    It is "plain", unless another one is right under every attack on surely more of the seeds that
    choose. Those that lose more than half a point of accuracy do not count.

    Args:
        right: where the model before and the candidates are right on the seeds that choose, by name
            and attack; "all" for the seeds as they are, and others for those that are attacked.

    """
    least = right[BEFORE][_ALL].mean() - MOST_LOST_CHOSEN
    stands = {
        name: _stands(sets)
        for name, sets in right.items()
        if name != BEFORE and sets[_ALL].mean() >= least
    }
    return chosen_candidate(stands) or BEFORE


def _stands(sets: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return which attacked inputs are right under every attack, and as they are."""
    under = np.stack([found for name, found in sets.items() if name != _ALL])
    return np.asarray(under.all(axis=0))


def _row(name: str, of_parts: _Decided) -> CheckpointRow:
    found = {part: _figures(sets) for part, sets in of_parts.items()}
    return CheckpointRow(
        name=name, choose=found[CHOOSE], judge=found[JUDGE], fresh=found.get(FRESH)
    )


def _figures(sets: Mapping[str, NDArray[np.bool_]]) -> RightUnderAttack:
    kept = {name: int(found.sum()) for name, found in sets.items() if name != _ALL}
    attacked = [len(found) for name, found in sets.items() if name != _ALL]
    whole = sets[_ALL]
    return RightUnderAttack(
        inputs=len(whole), right=int(whole.sum()), attacked=max(attacked, default=0), kept=kept
    )
