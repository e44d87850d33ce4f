"""What `repair.json` says of repairs that are judged by labels, each in a section of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from edgeflare.record.json_types import Amount, Count, CountFromOne, Share
from edgeflare.repair.judging.fairness import Fairness
from edgeflare.repair.judging.judgement import Change, Figures
from edgeflare.repair.judging.judgement_inputs import FRESH

if TYPE_CHECKING:
    from typing_extensions import Self

CHOOSE: Final = "choose"
JUDGE: Final = "judge"
"""Parts of the inputs, as the figures of a model name them; `FRESH` is that of `--test`."""

BEFORE: Final = "before"
"""What the model before is called among candidates."""

PLAIN: Final = "plain"
"""The candidate that is taken where no other one is surely better: nothing but training."""

MEAN_OF_BOTH: Final = "mean of both answers"
"""What a model is called that answers by the mean of its answers with either value; no file."""

PartFigures = TypeVar("PartFigures")


class LabelledRow(msgspec.Struct, Generic[PartFigures], frozen=True, kw_only=True):
    """A model, and its figures on each part of the inputs.

    Attributes:
        name: the candidate's name, or "before".
        choose: figures on the seeds that choose.
        judge: on those that judge.
        fresh: on the inputs of `--test`; null without.

    """

    name: str
    choose: PartFigures
    judge: PartFigures
    fresh: PartFigures | None

    @classmethod
    def of(cls, name: str, figures: Mapping[str, PartFigures], **more: Any) -> Self:
        """Return the row of a model, given its figures by the name of the part."""
        fresh = figures.get(FRESH)
        return cls(name=name, choose=figures[CHOOSE], judge=figures[JUDGE], fresh=fresh, **more)


class LabelledOnDevice(msgspec.Struct, Generic[PartFigures], frozen=True, kw_only=True):
    """The chosen candidate on a device, on the seeds that judge."""

    device: str
    judge: PartFigures


class FairnessRow(LabelledRow[Fairness], frozen=True, kw_only=True):
    """A model, or the mean of its answers to an input with either value of the attribute.

    Attributes:
        name: the candidate's name; "before", or "mean of both answers", which is no file.
        choose: figures on the seeds that fit, without their labels, and those that choose.

    """


class FairnessOnDevice(LabelledOnDevice[Fairness], frozen=True, kw_only=True):
    """The chosen candidate on a device, on the seeds that judge."""


class FairnessRepair(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the dependence of decisions on an attribute.

    Attributes:
        columns: positions of the attribute's columns.
        rows: the model before, the candidates, and the mean of both answers.
        devices: the chosen candidate on each device; empty where none is written.

    """

    columns: tuple[Count, ...]
    rows: tuple[FairnessRow, ...]
    devices: tuple[FairnessOnDevice, ...]


class RightUnderAttack(msgspec.Struct, frozen=True, kw_only=True):
    """How often a classifier gives the true label.

    Attributes:
        inputs: how many.
        right: how many it gives the true label to.
        attacked: how many of them are attacked, by the original's gradient.
        kept: how many of these it gives the true label to, by the name of the attack; "none" for
            them as they are.

    """

    inputs: Count
    right: Count
    attacked: Count
    kept: Mapping[str, Count]

    @property
    def accuracy(self) -> float:
        """The share of right ones."""
        return self.right / self.inputs


class CheckpointRow(LabelledRow[RightUnderAttack], frozen=True, kw_only=True):
    """A model of a repair by checkpoints; of the inputs of `--test` none is attacked."""


class CheckpointOnDevice(LabelledOnDevice[RightUnderAttack], frozen=True, kw_only=True):
    """The chosen candidate on a device, on the seeds that judge."""


class TeachingCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint, and how many of the seeds that fit it teaches."""

    file: str
    taught: Count


class CheckpointRepair(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a network that checkpoints of its training have taught.

    Attributes:
        checkpoints: those that were given, in their order.
        radius: the most that an attack changes a value, in levels.
        rows: the model before, and the candidates.
        devices: the chosen candidate on each device; empty where none is written.

    """

    checkpoints: tuple[TeachingCheckpoint, ...]
    radius: Amount
    rows: tuple[CheckpointRow, ...]
    devices: tuple[CheckpointOnDevice, ...]


class Accuracy(msgspec.Struct, frozen=True):
    """A float model and its compressed form on some labelled inputs.

    Attributes:
        right: inputs to which the float model gives the true label.
        compressed: figures of the compressed model, which deviates where it decides otherwise than
            that float model.

    """

    right: Count
    compressed: Figures


class FoundConnection(msgspec.Struct, frozen=True):
    """A connection between two features of a block that a search kept.

    Attributes:
        earlier: number of the feature that it begins at; 0 is the block's input.
        later: number of the feature that it leads to.
        operator: "sep_conv"; "original" for what the network itself has there.
        share: weight of the operator among the candidates in the end.

    """

    earlier: Count
    later: Count
    operator: str
    share: Share


class ArchitectureRow(LabelledRow[Accuracy], frozen=True, kw_only=True):
    """A float model and its compressed form: the pair before, or a candidate.

    Attributes:
        name: the candidate's name; "before", and "plain" for what was fine-tuned alone.
        connections: what the search kept, of a candidate that it found.

    """

    connections: tuple[FoundConnection, ...] = ()


class BlockFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What localization says of a block.

    Attributes:
        name: "block 1".
        operators: positions of the first and the last operator in the original.
        neurons: how many it has.
        suspicious: how many of them are among the most suspicious ones of all.
        trial: accuracy on held-out seeds to fit with after a few steps that train it alone.

    """

    name: str
    operators: tuple[Count, Count]
    neurons: Count
    suspicious: Count
    trial: Share


class CompressedOnDevice(LabelledOnDevice[Figures], frozen=True, kw_only=True):
    """The chosen candidate's compressed form on a device, on the seeds that judge."""


class ArchitectureRepair(msgspec.Struct, frozen=True, kw_only=True):
    """A float original whose block was searched, beside the one that was fine-tuned alone.

    Attributes:
        steps: batches that each candidate was trained with.
        rate: the rate that was best for the control after a tenth of them, of all candidates.
        suspects: how many of the most suspicious neurons were counted.
        blocks: the blocks of the original, in execution order.
        located: the block with most of the suspicious neurons.
        best_trial: the block whose trial had the best accuracy.
        rows: the pair before, and the candidates.
        change: inputs that judge, `--test` among them, on which the compressed model before or the
            chosen candidate's alone is right; null where none is chosen.
        devices: the chosen candidate on each device; empty where none is written.
        original: the file with the repaired original; null where none is written.

    """

    steps: CountFromOne
    rate: Amount
    suspects: CountFromOne
    blocks: tuple[BlockFigures, ...]
    located: str
    best_trial: str
    rows: tuple[ArchitectureRow, ...]
    change: Change | None
    devices: tuple[CompressedOnDevice, ...]
    original: str | None
