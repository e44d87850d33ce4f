"""What a device does in a check, by its decisions, its outputs and its operators."""

from __future__ import annotations

from typing import Literal

import msgspec

from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.pages.facts import count_of, in_words
from edgeflare.record.json_types import Amount, Count, CountFromOne
from edgeflare.release.figures.data import OtherReading
from edgeflare.release.figures.decisions import DecisionChanges, DecisionFigures
from edgeflare.run.run_document import RunDevice


class DeviceFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What one device did.

    Attributes:
        decisions: how it decides beside the other arms.
        kernels: whether it computes the file as the host does.
        outputs: how far its outputs are apart, as numbers.
        score: how much higher it scores what is decided; null where the task has no such score.

    """

    decisions: DecisionFigures
    kernels: KernelFigures
    outputs: tuple[OutputFigures, ...]
    score: ScoreError | None = None


class KernelFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a device computes the file as the host does.

    Attributes:
        device: the device, and what is known of it.
        changes: changed decisions, from the twin to the device, with the pair's own stages.
        repeated: how many inputs the device was given once more.
        unsteady: those of them on which its outputs were others then.
        undecided: those of them that it decided otherwise then.
        reading: a preprocessing with which the twin decides as the device clearly more often; null
            where none was found, or none was tried.
        stages: what its own stages change; null where it has none of its own.
        warnings: a sentence each, without its full stop.
        variants: what it answers in other ways; null until it was asked.

    """

    device: RunDevice
    changes: DecisionChanges
    repeated: Count
    unsteady: Count
    undecided: Count
    reading: OtherReading | None
    stages: StageFigures | None
    warnings: tuple[str, ...]
    variants: tuple[InvocationVariant, ...] | None = None


class StageFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What stands before and behind the model on a device, and is not what the pair has.

    Attributes:
        inputs: how many were tried with both.
        changed: those that the device decides otherwise than it would with the pair's own.
        labelled: those of which is known what is right.
        right: those that it gets right as it is.
        right_as_pair: those that it would get right with the pair's own.
        harmed: those that it would get right with the pair's own alone.
        helped: those that it gets right as it is alone.
        given: the largest difference of what the model is given, in real values.
        decided: inputs among the first that are decided otherwise where the same outputs are read
            as the pair reads them.
        settings: what the device says otherwise, such as "channels bgr instead of rgb".

    """

    inputs: CountFromOne
    changed: Count
    labelled: Count
    right: Count
    right_as_pair: Count
    harmed: Count
    helped: Count
    given: Amount
    decided: Count
    settings: tuple[str, ...]


class InvocationVariant(msgspec.Struct, frozen=True, kw_only=True):
    """What a device answers to the same inputs in another way than one by one, as its profile says.

    Attributes:
        kind: on another number of threads, or as items of one batch.
        size: the number of threads, or of items.
        inputs: how many it was given that it answers in its own way.
        failed: those of them without an answer in this way.
        others: those of them with other outputs.
        changed: those of these that are decided otherwise, but for ties; null where nobody knows.
        snr_db: how far the outputs are apart, of the one that is farthest; null where all are
            equal, or not finite.

    """

    kind: Literal["threads", "batch"]
    size: CountFromOne
    inputs: Count
    failed: Count
    others: Count
    changed: Count | None
    snr_db: float | None

    @property
    def way(self) -> str:
        """The way, such as "on 2 threads"."""
        return (
            f"on {count_of(self.size, 'thread')}"
            if self.kind == "threads"
            else (f"in batches of {self.size}")
        )

    @property
    def wrong(self) -> int:
        """How many inputs are decided otherwise in this way, or not at all."""
        return self.failed + (self.changed or 0)


class OutputFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How far an output is apart, over many inputs.

    Attributes:
        output: name of the output in the compressed model.
        read: whether the task reads it, so that decisions hang on it.
        compression: error of the twin's against the original's; null without an original, or where
            it has no such output.
        kernels: error of the device's against the twin's; null where no input was answered.

    """

    output: str
    read: bool
    compression: LayerError | None
    kernels: LayerError | None


class ScoreError(msgspec.Struct, frozen=True, kw_only=True):
    """How much higher a device scores what is decided than the reference does.

    Attributes:
        score: what it is, such as the probability of the decision.
        inputs: on how many both are known.
        median: median difference, the device's score less the reference's.
        low: lower end of the median's interval of 95 %.
        high: upper end of that interval.
        effect: the median over the standard deviation of the differences, as a normal distribution
            with their quartiles has it: .2 is small, .8 is large; null where they do not vary.

    """

    score: str
    inputs: CountFromOne
    median: float
    low: float
    high: float
    effect: float | None


class SeenOperators(msgspec.Struct, frozen=True, kw_only=True):
    """What `edgeflare conform` says of the operators of the compressed model on a device.

    Attributes:
        device: name of the device.
        run: the run directory within the folder of the check.
        operators: how many the model has.
        tried: those of them that were run as they stand, or are equal to one that was.
        models: how many models of them and of others near to them were run.
        faults: faults of operators on the device that count, those of the model's own first.

    """

    device: str
    run: str
    operators: Count
    tried: Count
    models: Count
    faults: tuple[OperatorFault, ...]


class OperatorFault(msgspec.Struct, frozen=True, kw_only=True):
    """A way in which an operator is wrong by itself on a device, as `edgeflare conform` found it.

    Attributes:
        number: number of the finding in the run.
        operator: name of the operator.
        type: type of the operator's values, such as int8.
        symptom: how the operator fails, such as "wrong-values".
        condition: predicates that all failing models share and others lack; empty where there are
            none.
        places: positions of the model's operators that are wrong so as they stand, on values that
            were drawn for them; empty where only others near to them are.
        issue: what the world knows of it, in a sentence; empty where nothing is known.

    """

    number: CountFromOne
    operator: str
    type: str
    symptom: str
    condition: tuple[str, ...]
    places: tuple[Count, ...]
    issue: str

    @property
    def layers(self) -> tuple[str, ...]:
        """The operators of the model, as layers are named."""
        return tuple(f"{self.operator} (operator {place})" for place in self.places)

    @property
    def when(self) -> str:
        """The condition in words; empty where it is wrong always."""
        return f" where {' and '.join(self.condition)}" if self.condition else ""

    def __str__(self) -> str:
        what = self.layers[0] if self.layers else f"{self.operator} {self.type}"
        return f"{what}: {in_words(self.symptom)}{'' if self.layers else self.when}"
