"""All that a check measures, as its document has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.record.json_types import Amount, Count, CountFromOne, Share
from edgeflare.release.figures.condition_cells import FieldFigures
from edgeflare.release.figures.data import DataFigures, OtherReading
from edgeflare.release.figures.device_figures import DeviceFigures, InvocationVariant, SeenOperators
from edgeflare.release.figures.file import FileFault, FileFigures, SeenLayers
from edgeflare.run.run_document import RunDevice
from edgeflare.statistics.proportion import ShareEstimate, paired_difference


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
        missing: reasons why parts could not be measured, by the name of the part.
        cut: the names of the parts that were cut off, or not begun, by the time limit or the user.

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

    def wrong_layers(self, device: str) -> tuple[str, ...]:
        """Return the layers that a device computes otherwise than the twin, each in words."""
        return () if self.layers is None else self.layers.on_device.get(device, ())

    @property
    def fewest_inputs(self) -> int:
        """Number of inputs that the device was asked about that was asked about the fewest."""
        return min((device.decisions.inputs for device in self.devices), default=0)

    @property
    def faults(self) -> tuple[FileFault, ...]:
        """The faults of the files and of their layers, whether they show or not."""
        return (
            *(self.file.faults if self.file else ()),
            *(self.layers.faults if self.layers else ()),
        )


class NearFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How near inputs lie that are decided otherwise, beside a reference compression.

    Attributes:
        measure: measure of nearness, such as PSNR.
        model: what was found of the compressed model.
        reference: what was found of the original as the maintained quantizer makes it int8.

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


class SearchedModel(msgspec.Struct, frozen=True, kw_only=True):
    """What a search from a few inputs found of a compressed model.

    Attributes:
        run: the run directory within the folder of the check.
        seeds: how many inputs were searched from.
        found: seeds from which an input was found that is decided otherwise, or that are so
            themselves.
        nearness_db: how near the found ones lie, the median; null where none was found.
        area: area under the curve of shares against nearness, from 0 to 1; less is better.
        harmed: found ones that the original alone decides as is right.

    """

    run: str
    seeds: Count
    found: Count
    nearness_db: Amount | None
    area: Share
    harmed: Count


class CostFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What an input costs on a device: an inference, or as many as it takes.

    Attributes:
        device: name of the device.
        compressed: time of the compressed model; null where it was not timed.
        original: time of the original; null where it does not run there.
        ratio: time of the compressed model over that of the original, in turns: the median; null
            without an original.
        ratio_low: lower end of the 95 % interval of that median; likewise.
        ratio_high: upper end; likewise.
        worker_bytes: resident memory of the largest worker process of the agent; null where that is
            not told.
        arena_bytes: size of the compressed model's arena; null where the runtime has none.
        inferences: number of inferences of one input, such as the windows of a sound, which the
            times are of together.

    """

    device: str
    compressed: InferenceTime | None
    original: InferenceTime | None
    ratio: Amount | None
    ratio_low: Amount | None
    ratio_high: Amount | None
    worker_bytes: Count | None
    arena_bytes: Count | None
    inferences: CountFromOne = 1


class InferenceTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long an inference takes, in seconds, as the agent measures it.

    Attributes:
        inferences: number of inferences that were timed after the first.
        first_seconds: the first one, on a model that was just opened.
        median_seconds: median time of the others.
        high_seconds: what nine tenths of them do not exceed.

    """

    inferences: CountFromOne
    first_seconds: Amount
    median_seconds: Amount
    high_seconds: Amount


class MendedInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Of held-out inputs those that are wrong, before a repair and after it.

    Attributes:
        inputs: how many there are.
        before: those that the compressed model has wrong.
        after: those that the repaired one has wrong.
        mended: those that the first alone has wrong.
        broken: those that the second alone has wrong.

    """

    inputs: Count
    before: Count
    after: Count
    mended: Count
    broken: Count

    @property
    def gain(self) -> ShareEstimate | None:
        """The share that is mended less that broken; None of no inputs."""
        return paired_difference(self.mended, self.broken, self.inputs) if self.inputs else None


class MendFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What `edgeflare repair` at equal cost gives.

    Attributes:
        folder: folder of the repair, within that of the check.
        candidate: the name of the one that is chosen; null where none is.
        written: whether that surely gains, so that there is a repaired model.
        why: why, or why not, as the repair says it.
        deviating: inputs as they come that are decided otherwise than by the original; null where
            nothing is chosen, or the chosen one fails on held-out inputs.
        wrong: likewise those of the labelled ones that are decided wrongly; null without labels.
        near: likewise inputs near the original's decision boundary that are decided otherwise.
        beyond: the options that allow the best candidate beyond the limits of cost; empty where
            none surely gains more.
        near_beyond: inputs near the boundary that this one decides otherwise; null without.

    """

    folder: str
    candidate: str | None
    written: bool
    why: str
    deviating: MendedInputs | None
    wrong: MendedInputs | None
    near: MendedInputs | None
    beyond: tuple[str, ...]
    near_beyond: Count | None

    @property
    def gain(self) -> ShareEstimate | None:
        """What it gains on held-out inputs as they come: in accuracy where that is known."""
        best = self.wrong or self.deviating
        return None if best is None or not self.written else best.gain

    def in_words(self) -> str:
        """Return what it gives, a sentence without its full stop; what counts most comes first."""
        words = f"`repair` does not mend it at equal cost: {self.why}"
        if self.written and self.near is not None:
            near = self.near
            broken = f" and breaks {near.broken:,}" if near.broken else ""
            words = (
                f"`repair` at equal cost: {self._as_they_come()}of {near.before:,} that deviate"
                f" near the boundary it mends {near.mended:,}{broken}"
            )
        if self.near_beyond is None:
            return words
        return f"{words}; {self.near_beyond:,} deviate beyond that cost, {' '.join(self.beyond)}"

    def _as_they_come(self) -> str:
        """Return what it gives on inputs as they come, up to a semicolon."""
        known, gain = self.wrong or self.deviating, self.gain
        if known is None or gain is None:
            return ""
        before, after = (1 - wrong / known.inputs for wrong in (known.before, known.after))
        what = "agreement" if self.wrong is None else "accuracy"
        return (
            f"{what} {after:.1%} instead of {before:.1%} on {known.inputs} held-out inputs (a gain"
            f" of {gain.low:.1%} to {gain.high:.1%}); "
        )


class DrawnFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a device does on drawn inputs, beside the host.

    Attributes:
        device: the device, and what is known of it.
        inputs: how many were drawn.
        samples: those of them that have a picture or a sound of the package.
        failed_here: inputs without an answer of the device, by kind of failure.
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

    @property
    def sqnr_db(self) -> float | None:
        """SQNR of the output that is farthest from the host's; None where all are equal to it."""
        errors = (output.error for output in self.outputs if output.error is not None)
        return min((error.snr_db for error in errors if error.snr_db is not None), default=None)


class DrawnOutput(msgspec.Struct, frozen=True, kw_only=True):
    """How an output of a device is on drawn inputs.

    Attributes:
        output: name of the output.
        error: how far it is from the host's; null where no input was answered.
        not_finite: inputs on which it has NaN or infinity.
        not_finite_alone: those of them on which the host has none.
        constant: whether it is the same for all inputs.
        constant_on_host: likewise on the host.
        share_at_limits: the share of its values at an end of its range.

    """

    output: str
    error: LayerError | None
    not_finite: Count
    not_finite_alone: Count
    constant: bool
    constant_on_host: bool
    share_at_limits: Share
