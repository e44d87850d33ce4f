"""The repair of a classifier by checkpoints of its training: DARE, and plain training beside it.

Three fifths of the seeds tune, one chooses and one judges, with the inputs of `--test`. As in the
paper (§4.2.3) the original is attacked, and what counts is how often candidates give the true label
to the attacked inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.judging.candidate_model import CandidateModel, open_candidate
from edgeflare.repair.judging.judgement_inputs import FRESH, decisions
from edgeflare.repair.judging.robustness import RADIUS, attacked_inputs, require_attackable
from edgeflare.repair.labelled.labelled_repair import (
    MOST_LOST,
    MOST_LOST_CHOSEN,
    LabelledCandidate,
    LabelledRepair,
    each_made,
    surely_right,
)
from edgeflare.repair.labelled_details import (
    BEFORE,
    JUDGE,
    PLAIN,
    CheckpointOnDevice,
    CheckpointRepair,
    CheckpointRow,
    RightUnderAttack,
    TeachingCheckpoint,
)
from edgeflare.repair.post_training.dare import (
    TaughtRows,
    fine_tuned,
    layer_before_last,
    taught_rows,
    tuned_towards,
)
from edgeflare.repair.repair_candidate import ReportProgress, StepProgress
from edgeflare.repair.repair_document import RepairDocument
from edgeflare.statistics.binomial import surely_more

_MOST_ROWS = 10_000
"""Seeds to tune with, at most."""

_MOST_ATTACKED = 500
"""Inputs of a part that are attacked, at most: PGD takes some 40 ms for each of LeNet-4."""

_CANDIDATES: Final = "dare", "dare-by-labels", PLAIN

_Right = Mapping[str, NDArray[np.bool_]]
"""Where a model is right on a part of the inputs, by attack; "all" for all of the part."""

_Inputs = Mapping[str, NDArray[np.generic]]
"""The inputs of a part, by attack."""

_ALL = "all"


class CheckpointTuning(LabelledRepair[_Right]):
    """The compressed model of a pair, tuned by checkpoints of the original's training.

    What is seen of a model is where it is right, under attack and not. The original is a `.tflite`
    file, and the checkpoints are others of its structure.
    """

    @property
    def plan(self) -> str:
        """How many checkpoints there are, and what is tried."""
        return f"Checkpoints: {len(self._checkpoints)}. Candidates: {', '.join(_CANDIDATES)}"

    def require_pair(self) -> None:
        """Refuse another task, and checkpoints of another structure."""
        pair = self.pair
        if pair.interface.task != DEFAULT_TASK:
            raise UserError(
                f"--checkpoints teach classes, and {pair.name} is of the task"
                f" {pair.interface.task}: leave them away, and other methods are tried"
            )
        original = Path(str(pair.original))
        if original.suffix.lower() != ".tflite":
            raise UserError(
                f"--checkpoints are compared with the original, and {pair.original} is no .tflite"
                " file"
            )
        self._original = read_model_file(original)
        self._checkpoints = {file: read_model_file(Path(file)) for file in self.request.checkpoints}
        for file, checkpoint in self._checkpoints.items():
            like = Graph(self._original, str(original))
            _require_same_structure(Graph(checkpoint, file), like)

    def prepare(self) -> None:
        """Refuse an original that cannot be attacked, and encode the seeds to tune with."""
        require_attackable(self._original, self.opened, np.asarray(self.opened.seeds.inputs))
        fit = self.split.fit[np.sort(self.rng.permutation(len(self.split.fit))[:_MOST_ROWS])]
        inputs, ids = np.asarray(self.opened.seeds.inputs)[fit], self.ids(len(fit))
        rows, original_rows = (
            self.opened.panel.rows(arm, inputs, ids) for arm in (Arm.TWIN, Arm.ORIGINAL)
        )
        compressed = read_model_file(self.pair.compressed)
        self._network = QuantizedNetwork(compressed, self._original, rows, original_rows)
        self._fit_labels = self.labels[fit]

    def candidates(self, progress: ReportProgress) -> list[LabelledCandidate[_Right]]:
        """Attack the inputs that are judged by, and make what the checkpoints teach."""
        target = layer_before_last(self._network)
        checkpoints = list(self._checkpoints.values())
        taught = taught_rows(self._network, self._fit_labels, checkpoints, target)
        counts = np.bincount(taught.teachers + 1, minlength=len(checkpoints) + 1)[1:]
        self._taught = dict(zip(self._checkpoints, counts.tolist(), strict=True))
        self._attacked = self._attacks(progress)
        makers = {name: partial(self._made, name, taught) for name in _CANDIDATES}
        return [
            LabelledCandidate.in_place(tried, content, self._right(content))
            for tried, content in each_made(makers, progress)
        ]

    def before(self) -> dict[str, _Right]:
        """Return where the compressed model is right."""
        return self._right(self._network.content)

    def choice(self, evidence: Mapping[str, _Right]) -> str | None:
        """Return "plain", unless another one surely stands more attacks."""
        return candidate_to_judge(evidence)

    def verdict(
        self, before: Mapping[str, _Right], after: Mapping[str, _Right], name: str
    ) -> tuple[bool, str]:
        """Say whether surely more of the attacked seeds stand, and accuracy hardly falls."""
        old, new = (
            float(np.concatenate([of[part][_ALL] for part in self.held_out]).mean())
            for of in (before, after)
        )
        stood, stands = (_stands(of[JUDGE]) for of in (before, after))
        said = (
            f"of {len(stood):,} attacked seeds that judge {stands.sum():,} instead of"
            f" {stood.sum():,} are right under every attack with {name}, and accuracy on held-out"
            f" inputs is {new:.2%} instead of {old:.2%}"
        )
        if new < old - MOST_LOST:
            return False, f"{name} loses more than a point of accuracy: {said}"
        if surely_more(int((stands & ~stood).sum()), int((stood & ~stands).sum())):
            return True, said
        return False, f"{name} does not surely stand more attacks: {said}"

    def described(
        self,
        document: RepairDocument,
        evidence: Mapping[str, Mapping[str, _Right]],
        on_devices: Mapping[str, _Right],
    ) -> RepairDocument:
        """Return the document with what the checkpoints taught."""
        repair = CheckpointRepair(
            checkpoints=tuple(
                TeachingCheckpoint(file=file, taught=count) for file, count in self._taught.items()
            ),
            radius=RADIUS,
            rows=tuple(
                CheckpointRow.of(name, {part: _figures(right) for part, right in of.items()})
                for name, of in evidence.items()
            ),
            devices=tuple(
                CheckpointOnDevice(device=device, judge=_figures(right))
                for device, right in on_devices.items()
            ),
        )
        return structs.replace(document, checkpoints=repair)

    def seen_on(self, device: CandidateModel, _on_host: _Right) -> _Right:
        """Return where it is right."""
        return self._right_on(device, JUDGE)

    def lost(self, before: _Right, after: _Right) -> str | None:
        """Compare how many inputs are right under every attack."""
        old, new = (int(_stands(right).sum()) for right in (before, after))
        said = f"{new:,} attacked seeds that judge stand every attack instead of {old:,}"
        return said if new < old else None

    def _made(self, name: str, taught: TaughtRows, progress: StepProgress) -> bytes:
        network, oracle, rng = self._network, taught.oracle, self.fitted_rng()
        if name == PLAIN:
            return fine_tuned(network, network.rows, self._fit_labels, rng, progress)
        if name != _CANDIDATES[0]:
            return fine_tuned(network, oracle.rows, oracle.groups, rng, progress)
        target, percent = layer_before_last(network), self.request.slice_percent
        return tuned_towards(network, target, oracle, self._fit_labels, percent, rng, progress)

    def _attacks(self, progress: ReportProgress) -> dict[str, _Inputs]:
        """Return the inputs of each part, and the first of the seeds after each attack."""
        progress("attacks", 0, 1)
        made: dict[str, _Inputs] = {}
        with open_candidate(self._original, self.opened) as model:
            for part, (inputs, labels) in self.parts.items():
                some = slice(0 if part == FRESH else _MOST_ATTACKED)
                under = attacked_inputs(model, self.opened, inputs[some], labels[some].tolist())
                made[part] = {_ALL: inputs, **(dict(under) if part != FRESH else {})}
        progress("attacks", 1, 1)
        return made

    def _right(self, content: bytes) -> dict[str, _Right]:
        """Return where a model is right on the host, by part."""
        with open_candidate(content, self.opened) as model:
            return {part: self._right_on(model, part) for part in self.parts}

    def _right_on(self, model: CandidateModel, part: str) -> _Right:
        labels = self.parts[part][1]
        return {
            name: decisions(self.answers(model, inputs)) == labels[: len(inputs)]
            for name, inputs in self._attacked[part].items()
        }


def candidate_to_judge(right: Mapping[str, _Right]) -> str | None:
    """Return the candidate to judge; None where there is none.

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
    return surely_right(stands)


def _stands(sets: _Right) -> NDArray[np.bool_]:
    """Return which attacked inputs are right under every attack, and as they are."""
    under = np.stack([found for name, found in sets.items() if name != _ALL])
    return np.asarray(under.all(axis=0))


def _figures(sets: _Right) -> RightUnderAttack:
    kept = {name: int(found.sum()) for name, found in sets.items() if name != _ALL}
    attacked = [len(found) for name, found in sets.items() if name != _ALL]
    whole = sets[_ALL]
    return RightUnderAttack(
        inputs=len(whole), right=int(whole.sum()), attacked=max(attacked, default=0), kept=kept
    )


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
