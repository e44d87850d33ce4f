"""What `repair.json` says of a repair by `--method archrepair`."""

from __future__ import annotations

import msgspec

from edgeflare.record.json_types import Amount, Count, CountFromOne, Share
from edgeflare.repair.judging.judgement import Change, Figures


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


class ArchitectureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A float model and its compressed form: the pair before, or a candidate.

    Attributes:
        name: the candidate's name; "before", and "plain" for what was fine-tuned alone.
        connections: what the search kept, of a candidate that it found.
        choose: figures on the seeds that choose.
        judge: on those that judge.
        fresh: on the inputs of `--test`; null without.

    """

    name: str
    connections: tuple[FoundConnection, ...] = ()
    choose: Accuracy
    judge: Accuracy
    fresh: Accuracy | None


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


class CompressedOnDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen candidate's compressed form on a device, on the seeds that judge."""

    device: str
    judge: Figures


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
