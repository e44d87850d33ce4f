"""Inspects the units of an opened pair, input by input, until the verdict is precise enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.input_space import Input, read_only
from edgeflare.core.query import Arm, TranslatedQuery
from edgeflare.devices.device import Device
from edgeflare.diagnose.inspect.behaviour_block import ERROR_GRADIENT, BehaviourBlock
from edgeflare.diagnose.inspect.behaviour_scores import require_sparse_regression
from edgeflare.diagnose.inspect.hypotheses import (
    built_in_hypotheses,
    commonest_pair,
    hypothesis_values,
    require_varying,
)
from edgeflare.diagnose.inspect.inspect_document import InspectionResult
from edgeflare.diagnose.inspect.inspection import PERMUTATIONS, Inspection, require_precision
from edgeflare.diagnose.inspect.inspection_inputs import Found, InspectedInputs, inspected_inputs
from edgeflare.diagnose.inspect.unit_behaviours import CompressedTensors, Row, UnitBehaviours
from edgeflare.diagnose.near_boundary import Inputs
from edgeflare.errors import UserError
from edgeflare.hypothesis import InspectedInput, UnitHypothesis
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_probe import ProbeFailed
from edgeflare.models.pair import Pair
from edgeflare.models.tflite_graph import Graph

if TYPE_CHECKING:
    from edgeflare.whitebox.pair_translation import TranslatedPair


BLOCK = 32
"""Inputs between two looks at whether it is precise enough, or stopped."""


@dataclass(frozen=True, slots=True)
class InspectionRequest:
    """What is to be inspected.

    Attributes:
        behaviours: names of those that are wanted.
        hypotheses: the user's.
        precision: half the width of the 95 % interval at which it ends.
        inputs: the most inputs near the boundary.
        rng_seed: seed of all random draws.
        permutations: number of permutations that levels come from.

    """

    behaviours: tuple[str, ...]
    hypotheses: tuple[UnitHypothesis, ...]
    precision: float
    inputs: int
    rng_seed: int = 0
    permutations: int = PERMUTATIONS

    def check(self) -> None:
        """Refuse what cannot be done, before anything is opened.

        Raises:
            UserError: the precision is out of its range, or scikit-learn is not installed.

        """
        require_precision(self.precision)
        require_sparse_regression()


def inspect_pair(
    opened: OpenedPair,
    request: InspectionRequest,
    found: Sequence[Found],
    tensors_of: CompressedTensors | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> InspectionResult:
    """Inspect the units of a pair.

    Args:
        opened: the pair, with the seeds that inputs are made from.
        request: what is wanted.
        found: what a run found, some of which units are chosen on too.
        tensors_of: computes the tensors of the compressed model, such as on a device; by default
            its translation does, which is what XNNPACK computes.
        progress: is called with the number of inputs that are done, and that of all.

    Raises:
        UserError: a model cannot be translated or gives NaN or infinity, a hypothesis gives no
            numbers, or there are too few inputs.

    """
    request.check()
    translated = _translated(opened)
    original, twin = translated.network(Arm.ORIGINAL), translated.network(Arm.TWIN)
    units = UnitBehaviours(original, twin, request.behaviours, tensors_of or twin.tensors)
    rng = np.random.default_rng(request.rng_seed)
    models = _Models(opened, translated)
    taken = inspected_inputs(
        opened.seeds.inputs,
        models.original_scores,
        found,
        request.inputs,
        rng,
        opened.seeds.seed_ids,
    )
    built_in = built_in_hypotheses(commonest_pair(taken.scores))
    hypotheses = (*built_in, *request.hypotheses)
    inspection = Inspection(units.layers, hypotheses, request.precision, rng, request.permutations)
    said = (models.inspected(inspected) for part in taken.parts() for inspected in part)
    values = hypothesis_values(hypotheses, said)
    require_varying(hypotheses, [values])
    total = len(taken)
    for at in range(0, total, BLOCK):
        rows = slice(at, min(at + BLOCK, total))
        wanted = inspection.add(_block(units, models, taken, rows, values[rows]))
        progress(rows.stop, total)
        if not wanted:
            break
    return inspection.result()


def _translated(opened: OpenedPair) -> TranslatedPair:
    """Return the translations of a pair; whoever is refused them is told what has some."""
    import_module("edgeflare.whitebox.array_library")  # where the extra is missing, that is said
    try:
        return opened.white_box.open()
    except UserError as error:
        raise UserError(
            f"{error}; edgeflare inspect takes pairs of .tflite classifiers of images or arrays"
        ) from None


def _block(
    units: UnitBehaviours,
    models: _Models,
    taken: InspectedInputs,
    rows: slice,
    hypotheses: NDArray[np.float64],
) -> BehaviourBlock:
    """Return what the units do on some inputs.

    Raises:
        UserError: something of it is not finite.

    """
    inputs = taken.rows(rows)
    found = [
        units.of(*pair)
        for pair in zip(
            models.rows(Arm.ORIGINAL, inputs), models.rows(Arm.TWIN, inputs), strict=True
        )
    ]
    values = {
        name: np.stack([input_behaviours.values[name] for input_behaviours in found])
        for name in found[0].values
    }
    errors = np.array([input_behaviours.margin_error for input_behaviours in found])
    read = [errors] if ERROR_GRADIENT in values else []
    if not all(np.isfinite(array).all() for array in (*read, *values.values())):
        raise UserError(
            "a model gives NaN or infinity on inputs near the boundary, of which no channel has a"
            " share: `edgeflare layers` names the layer in which that begins"
        )
    return BehaviourBlock(
        values,
        hypotheses,
        errors,
        taken.groups[rows],
        taken.halves[rows],
        taken.strata[rows],
    )


@dataclass(frozen=True, slots=True)
class _Models:
    """What both models answer, as their translations compute it."""

    opened: OpenedPair
    translated: TranslatedPair

    def rows(self, arm: Arm, inputs: Inputs) -> NDArray[np.generic]:
        """Return inputs as the model of an arm takes them."""
        return self.opened.panel.host(arm).encoder.encode(inputs)

    def original_scores(self, inputs: Inputs) -> NDArray[np.float64]:
        """Return the original's scores for inputs: (n, choices)."""
        network = self.translated.network(Arm.ORIGINAL)
        return np.stack([network.evaluate(row)[1] for row in self.rows(Arm.ORIGINAL, inputs)])

    def inspected(self, input_: Input) -> InspectedInput:
        """Return an input with what both models say to it."""
        (told,) = self.translated.answered(TranslatedQuery([input_]))
        original, twin = (told.scores[arm] for arm in (Arm.ORIGINAL, Arm.TWIN))
        exact, got = (told.outcome[arm] for arm in (Arm.ORIGINAL, Arm.TWIN))
        return InspectedInput(
            read_only(input_),
            read_only(original),
            read_only(twin),
            original_label=int(original.argmax()),
            compressed_label=int(twin.argmax()),
            deviates=exact.differs_strictly(got),
        )


@contextmanager
def device_tensors(device: Device, pair: Pair) -> Iterator[Callable[[Row], Mapping[int, Row]]]:
    """Open the compressed model on a device, and yield what captures its tensors for a row.

    Raises:
        UserError: the device cannot capture tensors, or the model gives no answer on an input.

    """
    content = read_model_file(pair.executed)
    graph = Graph(content, str(pair.compressed))
    shape = graph.tensors[graph.inputs[0]].shape
    name = device.profile.name
    with closing(device.probe(content, capture=True)) as probe:

        def tensors_of(row: Row) -> Mapping[int, Row]:
            try:
                return dict(zip(probe.made, probe.run([row.reshape(shape)]), strict=True))
            except ProbeFailed as failed:
                raise UserError(f"{name}: no answer on an input: {failed}") from failed

        yield tensors_of
