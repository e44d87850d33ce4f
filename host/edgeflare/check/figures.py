"""What a check measures, as its document has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from edgeflare.check.mend_figures import MendFigures
from edgeflare.core.query import Arm
from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.pages.facts import count_of
from edgeflare.record.json_types import Amount, Count, CountFromOne, Share
from edgeflare.run.run_document import RunDevice
from edgeflare.run.systematic.figures import OtherOrder, SystematicDifferences


class OtherReading(msgspec.Struct, frozen=True, kw_only=True):
    """Another way to read images, with which a model answers clearly better.

    Attributes:
        words: how they are read, such as "read with its channels in reverse order".
        against: what the answers are held against: labels, or what another arm answers.
        inputs: on how many inputs it was tried.
        before: on how many of them the answer is as it should be with the pair's preprocessing.
        after: on how many with this one.

    """

    words: str
    against: Literal["labels", "original", "device"]
    inputs: CountFromOne
    before: Count
    after: Count


class DataFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the inputs allow to say.

    Attributes:
        source: the last part of the path that they are from.
        inputs: how many all arms were asked about.
        of: how many there are.
        labelled: those of which is known what is right.
        reference: the arm that the device is held against.
        right: of the labelled ones, how many that arm gets right; null where none is labelled.
        different: how many of the inputs are different ones; a repeated one says nothing new.
        classes: how many classes occur among the labels; null where there are none.
        of_classes: how many there are; null likewise.
        by_guessing: the share that it would get right if its decisions had nothing to do with the
            inputs, but were as frequent; null where decisions are not counted.
        alike: the share of the inputs that get the commonest decision of that arm; null where
            decisions are not counted.
        guessed: what was assumed of how inputs are prepared and may well be wrong, a sentence;
            empty where nothing was.
        label_order: the order in which the labels have the classes; null where it is the models'.
        other_reading: a preprocessing with which that arm is right clearly more often; null where
            none was found, or none was tried.

    """

    source: str
    inputs: Count
    of: CountFromOne
    labelled: Count
    reference: Arm
    right: Count | None = None
    different: Count | None = None
    classes: Count | None = None
    of_classes: Count | None = None
    by_guessing: Share | None = None
    alike: Share | None = None
    guessed: str = ""
    label_order: OtherOrder | None = None
    other_reading: OtherReading | None = None


class DecisionChanges(msgspec.Struct, frozen=True, kw_only=True):
    """How one arm decides otherwise than another one.

    Attributes:
        inputs: that both were asked about.
        changed: those that the second decides otherwise.
        by_tie: those of them by a tie.
        harmed: those that the first alone gets right.
        helped: those that the second alone gets right.

    """

    inputs: Count
    changed: Count
    by_tie: Count
    harmed: Count
    helped: Count

    @property
    def strictly(self) -> int:
        """How many decisions changed without a tie."""
        return self.changed - self.by_tie

    @property
    def net(self) -> int:
        """How many more inputs are harmed than helped."""
        return self.harmed - self.helped


class ClassLoss(msgspec.Struct, frozen=True, kw_only=True):
    """A class that the device gives significantly less often than the reference.

    Attributes:
        name: the class; with the head before it, of a model with several.
        inputs: that the reference gives it to.
        left: those in which it has fewer places on the device.
        came: those in which it has more.
        p: of the sign test, after Holm's correction for all classes.
        harmed_elsewhere: inputs that the reference takes for another class, and alone gets right.
        helped_elsewhere: likewise those that the device alone gets right.

    """

    name: str
    inputs: Count
    left: Count
    came: Count
    p: Share
    harmed_elsewhere: Count = 0
    helped_elsewhere: Count = 0

    @property
    def share(self) -> float:
        """The share of the class that is lost."""
        return min(1.0, (self.left - self.came) / max(1, self.inputs, self.left))


class ChangedInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input on which the device decides otherwise than the reference.

    Attributes:
        seed_id: of the input.
        name: of its file, or its place in it.
        said: what each arm answered, in words.
        right: what is right, in words; empty where that is not known.
        strength: how confidently the two differ; null where an arm failed.
        file: its path in the folder of the check; empty where inputs are not kept.

    """

    seed_id: Count
    name: str
    said: Mapping[Arm, str]
    right: str
    strength: float | None
    file: str = ""

    @property
    def change(self) -> str:
        """How the decision changed, from the reference to the device, in words."""
        return f"{self.said.get(Arm.ORIGINAL, self.said[Arm.TWIN])} → {self.said[Arm.DEVICE]}"

    @property
    def by_kernels(self) -> bool:
        """Whether the host decides on the compressed model as the original does."""
        return self.said.get(Arm.ORIGINAL) == self.said[Arm.TWIN]


class DecisionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How a device decides on inputs as they come, beside the other arms.

    Attributes:
        device: its name.
        inputs: how many were asked.
        failed: by arm and kind, on how many of them it has no answer; "nan" where its outputs are
            not finite. Arms that answered all are left out.
        begins: in which operator outputs begin not to be finite, in words; empty where they do not.
        labelled: those of which is known what is right.
        right: by arm, how many of these it gets right; empty where none is labelled.
        changes: from the reference to the device.
        by_file: from the original to the twin; null without an original.
        measure: what `distance` is, in words; empty where being right says it all.
        distance: by arm, its distance from what is right, on average.
        pooled_measure: what `pooled` is, in words; empty where the task has no such measure.
        pooled: by arm, a measure of all its answers together, such as mean average precision.
        losses: the classes that the device gives less often.
        systematic: what differs in the same way on many of them; null where nothing does.
        changed_inputs: those that are looked into, the strongest of the harmed first.

    """

    device: str
    inputs: Count
    failed: Mapping[Arm, Mapping[str, Count]]
    begins: str
    labelled: Count
    right: Mapping[Arm, Count]
    changes: DecisionChanges
    by_file: DecisionChanges | None
    measure: str
    distance: Mapping[Arm, float]
    pooled_measure: str
    pooled: Mapping[Arm, float]
    losses: tuple[ClassLoss, ...]
    systematic: SystematicDifferences | None
    changed_inputs: tuple[ChangedInput, ...]

    def failures(self, *arms: Arm) -> int:
        """Return on how many inputs the arm of some that fails most has no answer."""
        return max((sum(self.failed.get(arm, {}).values()) for arm in arms), default=0)


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
        decided: of the first of them, those on which reading the same outputs as the pair does
            decides otherwise.
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
        sqnr_db: how far the outputs are apart, of the one that is farthest; null where all are
            equal, or not finite.

    """

    kind: Literal["threads", "batch"]
    size: CountFromOne
    inputs: Count
    failed: Count
    others: Count
    changed: Count | None
    sqnr_db: float | None

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


class KernelFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a device computes the file as the host does.

    Attributes:
        device: it, and what is known of it.
        changes: from the twin to the device, with the pair's own stages.
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


class OutputFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How far an output is apart, over many inputs.

    Attributes:
        output: its name in the compressed model.
        compression: of the twin's from the original's; null without an original, or where the
            original has no such output.
        kernels: of the device's from the twin's; null where no input was answered.

    """

    output: str
    compression: LayerError | None
    kernels: LayerError | None


class ScoreError(msgspec.Struct, frozen=True, kw_only=True):
    """How much higher a device scores what is decided than the reference does.

    Attributes:
        score: what it is, such as the probability of the decision.
        inputs: on how many both are known.
        median: of the differences, the device's less the reference's.
        low: lower end of the median's interval of 95 %.
        high: its upper end.
        effect: the median over the standard deviation of the differences, as a normal distribution
            with their quartiles has it: .2 is small, .8 is large; null where they do not vary.

    """

    score: str
    inputs: CountFromOne
    median: float
    low: float
    high: float
    effect: float | None


FaultKind = Literal[
    "unread input",
    "state scale",
    "raw state",
    "copied scale",
    "flushed constant",
    "options",
    "not finite",
    "overflow",
    "constants",
    "input range",
    "cut off",
    "coarse",
]
"""What may be wrong with a compressed file."""


class FileFault(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong with a compressed file.

    Attributes:
        kind: what.
        place: where, such as a layer.
        words: what is wrong, a sentence without its full stop.
        advice: what to do about it, likewise.

    """

    kind: FaultKind
    place: str
    words: str
    advice: str


class FileFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the files say without being run.

    Attributes:
        original_bytes: size of the original's file; null where it is none.
        compressed_bytes: size of the compressed model's.
        faults: what is wrong in the compressed one.
        remarks: what is odd in the original, or alike in both, a sentence each.

    """

    original_bytes: Count | None
    compressed_bytes: Count
    faults: tuple[FileFault, ...]
    remarks: tuple[str, ...]


class SensitiveLayer(msgspec.Struct, frozen=True, kw_only=True):
    """What a layer does to decisions where it alone is quantized.

    Attributes:
        layer: its name.
        inputs: on how many inputs that was measured.
        changed: how many of their decisions change.
        margin: by how much the margin of a decision changes, on average.

    """

    layer: str
    inputs: CountFromOne
    changed: Count
    margin: Amount


class ExplainedChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changed inputs that the same thing is to blame for.

    Attributes:
        words: what that is, such as a layer that is quantized coarsely.
        inputs: how many.

    """

    words: str
    inputs: CountFromOne


class SeenLayers(msgspec.Struct, frozen=True, kw_only=True):
    """What the layers show.

    Attributes:
        inputs: how many were looked into.
        layers: how many layers the compressed model has.
        matched: those of them that could be held against one of the original's.
        faults: what is wrong with layers of the file.
        other_constants: how many layers have other constants than the original's, where most have,
            as after pruning or training.
        sensitive: what the most sensitive layer does, a sentence; empty where none was measured.
        worst: the three that decisions hang on most by themselves; none where that was not
            measured.
        explained: of changed inputs, to which layers compression's part is due, the most frequent
            first.
        on_device: by the name of a device, the layers that it computes otherwise than the twin,
            each in words; devices that compute all alike have none.
        together: by the name of a device, the operators that it computes rightly by themselves and
            wrongly one after the other; none where that is not known, or not so.
        notes: what could not be seen, a sentence each.

    """

    inputs: Count
    layers: Count
    matched: Count
    faults: tuple[FileFault, ...]
    other_constants: Count
    sensitive: str
    worst: tuple[SensitiveLayer, ...] = ()
    explained: tuple[ExplainedChanges, ...] = ()
    on_device: Mapping[str, tuple[str, ...]]
    together: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


class DrawnOutput(msgspec.Struct, frozen=True, kw_only=True):
    """How an output of a device is on drawn inputs.

    Attributes:
        output: its name.
        error: how far it is from the host's; null where no input was answered.
        not_finite: inputs on which it has NaN or infinity.
        not_finite_alone: those of them on which the host has none.
        constant: whether it is the same for all inputs.
        constant_on_host: likewise on the host.
        railed: the share of its values at an end of its range.

    """

    output: str
    error: LayerError | None
    not_finite: Count
    not_finite_alone: Count
    constant: bool
    constant_on_host: bool
    railed: Share


class DrawnFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a device does on drawn inputs, beside the host.

    Attributes:
        device: it, and what is known of it.
        inputs: how many were drawn.
        samples: those of them that have a picture or a sound of the package.
        failed_here: by kind, on how many of them it has no answer.
        failed_alone: on how many of them it has none where the host has one.
        answered: how many the host gives a finite answer to.
        outputs: how its outputs are.
        repeated: how many inputs it was given once more.
        unsteady: those of them on which its outputs were others then.
        variants: what it answers to some of them in other ways.
        warnings: a sentence each, without its full stop.

    """

    device: RunDevice
    inputs: CountFromOne
    samples: Count
    failed_here: Mapping[str, Count]
    failed_alone: Count
    answered: Count
    outputs: tuple[DrawnOutput, ...]
    repeated: Count
    unsteady: Count
    variants: tuple[InvocationVariant, ...]
    warnings: tuple[str, ...]


class OperatorFault(msgspec.Struct, frozen=True, kw_only=True):
    """A way in which an operator is wrong by itself on a device, as `edgeflare conform` found it.

    Attributes:
        number: of the finding.
        operator: its name.
        type: of its values.
        symptom: in which way it is wrong.
        condition: under which it is.
        places: of the operators of the model that are wrong so as they stand, on values that were
            drawn for them; empty where only others near to them are.

    """

    number: CountFromOne
    operator: str
    type: str
    symptom: str
    condition: tuple[str, ...]
    places: tuple[Count, ...]

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
        return f"{what}: {self.symptom}{'' if self.layers else self.when}"


class SeenOperators(msgspec.Struct, frozen=True, kw_only=True):
    """What `edgeflare conform` says of the operators of the compressed model on a device.

    Attributes:
        device: its name.
        run: the run directory within the folder of the check.
        operators: how many the model has.
        tried: those of them that were run as they stand, or are equal to one that was.
        models: how many models of them and of others near to them were run.
        faults: of the device, those that count.

    """

    device: str
    run: str
    operators: Count
    tried: Count
    models: Count
    faults: tuple[OperatorFault, ...]


class InferenceTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long an inference takes, in seconds, as the agent measures it.

    Attributes:
        inferences: how many were timed after the first.
        first: the first one, on a model that was just opened.
        median: of the others.
        high: what nine tenths of them do not exceed.

    """

    inferences: CountFromOne
    first: Amount
    median: Amount
    high: Amount


class CostFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What an inference costs on a device.

    Attributes:
        device: its name.
        compressed: time of the compressed model; null where it was not timed.
        original: that of the original; null where it does not run there.
        ratio: time of the compressed model over that of the original, in turns: the median, and
            the ends of its interval of 95 %; null without an original.
        worker_bytes: resident memory of the largest worker process of the agent; null where that is
            not told.
        arena_bytes: of the arena of the compressed model; null where the runtime has none.

    """

    device: str
    compressed: InferenceTime | None
    original: InferenceTime | None
    ratio: tuple[Amount, Amount, Amount] | None
    worker_bytes: Count | None
    arena_bytes: Count | None


class SearchedModel(msgspec.Struct, frozen=True, kw_only=True):
    """What a search from a few inputs found of a compressed model.

    Attributes:
        run: the run directory within the folder of the check.
        seeds: how many inputs were searched from.
        found: from how many of them one was found that is decided otherwise, or they are
            themselves.
        nearness_db: how near the found ones lie, the median; null where none was found.
        area: under the curve of shares against nearness, from 0 to 1; less is better.
        harmed: of the found ones, those that the original alone decides as is right.

    """

    run: str
    seeds: Count
    found: Count
    nearness_db: Amount | None
    area: Share
    harmed: Count


class NearFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How near inputs lie that are decided otherwise, beside a reference compression.

    Attributes:
        measure: of nearness, such as PSNR.
        model: the compressed model's.
        reference: that of the same original in int8, made by the maintained quantizer.

    """

    measure: str
    model: SearchedModel
    reference: SearchedModel

    @property
    def as_near(self) -> bool:
        """Whether they lie about as far as those of the reference, or farther."""
        return self.model.area <= self.reference.area + NEARER


NEARER: Final = 0.05
"""Difference of areas from which on inputs are nearer than those of the reference: 2.5 dB of 50."""


class FieldCell(msgspec.Struct, frozen=True, kw_only=True):
    """What a condition at a severity does.

    Attributes:
        condition: its name; "unchanged" for none.
        severity: from 1 to 5; 0 without a condition.
        right: how many inputs the original gets right under it.
        changes: from the original to the device.
        p: of the sign test of those harmed and helped, after Holm's correction for all cells.

    """

    condition: str
    severity: Count
    right: Count
    changes: DecisionChanges
    p: Share

    @property
    def net(self) -> float:
        """The share of the inputs that is harmed less that helped."""
        return self.changes.net / max(1, self.changes.inputs)


class FieldFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the conditions of the field do.

    Attributes:
        inputs: in each cell, at most.
        cells: how many cells, conditions at a severity, were tried.
        working: those of them in which the original still works.
        unchanged: the inputs as they are.
        worst: those of the working cells that lose most.
        further: what those that lose most of all do to other inputs; null where there are too few.

    """

    inputs: CountFromOne
    cells: CountFromOne
    working: Count
    unchanged: FieldCell
    worst: tuple[FieldCell, ...]
    further: FieldFigures | None = None

    def lost(self, limit: float) -> Iterator[tuple[FieldFigures, FieldCell]]:
        """Yield the cells that lose significantly, and more than a limit beyond the unchanged.

        Each comes with the figures that it is of: of many cells few are significant, which may be
        so on further inputs, where only those are tried that lost most.
        """
        for one in self.worst:
            if one.p < FIELD_CHANCE and one.net - max(0.0, self.unchanged.net) > limit:
                yield self, one
        if self.further is not None:
            yield from self.further.lost(limit)


FIELD_CHANCE: Final = 0.01
"""Greatest p of a cell's loss, corrected for the number of cells."""


class CheckFigures(msgspec.Struct, frozen=True, kw_only=True):
    """All that a check has measured so far.

    Attributes:
        data: what the inputs allow to say; null until that is known.
        devices: what each device did, in the order in which they were named.
        reading: a preprocessing with which the twin agrees with the original clearly more often;
            null where none was found.
        file: what the files say; null until they were read.
        layers: what the layers show; null until they were looked into, or where they cannot be.
        field: what the conditions of the field do; null until they were tried, or where they cannot
            be.
        near: how near inputs lie that are decided otherwise; null until that was searched for, or
            where it cannot be.
        costs: what an inference costs, on each device.
        operators: what the operators do by themselves, on each device where they were tried.
        drawn: what each device does on drawn inputs, where there are no others.
        mendable: whether the numbers in the file are to blame, and a repair takes the pair, as far
            as that shows without trying.
        mend: what a repair gives; null where none was tried, or it could not be.
        missing: by the name of a part that could not be measured, why not.
        cut: the names of the parts that were cut off, or not begun, by the budget or the user.

    """

    data: DataFigures | None = None
    devices: tuple[DeviceFigures, ...] = ()
    reading: OtherReading | None = None
    file: FileFigures | None = None
    layers: SeenLayers | None = None
    field: FieldFigures | None = None
    near: NearFigures | None = None
    costs: tuple[CostFigures, ...] = ()
    operators: tuple[SeenOperators, ...] = ()
    drawn: tuple[DrawnFigures, ...] = ()
    mendable: bool = False
    mend: MendFigures | None = None
    missing: Mapping[str, str] = {}
    cut: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[FileFault, ...]:
        """The faults of the files and of their layers, whether they show or not."""
        return (
            *(self.file.faults if self.file else ()),
            *(self.layers.faults if self.layers else ()),
        )


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
