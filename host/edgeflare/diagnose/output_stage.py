"""The output stage of an arm: what reads answers from a model's raw outputs."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, OutputMaker
from edgeflare.core.tensor import GivenRows, RawBatch, pack_rows
from edgeflare.models.decoder_rows import decoder_rows
from edgeflare.models.detection_rows import batch_with_unused_rows_zeroed
from edgeflare.models.evaluator import Signature
from edgeflare.models.model_probe import Values
from edgeflare.models.pair_interface import PairInterface


@dataclass(frozen=True, slots=True)
class OutputStage:
    """What stands between a model's raw outputs and its answers.

    Attributes:
        interface: says what rows the decoder reads, which a Python function may make.
        decoder: reads them.
        makers: what makes rows of the model's outputs, as `HostModel.makers` returns it.

    """

    interface: PairInterface
    decoder: Decoder
    makers: tuple[OutputMaker | None, ...] = ()

    def answers(self, signature: Signature, given: GivenRows, batch: RawBatch) -> list[Answer]:
        """Return the answer of each row.

        Args:
            signature: signature of the model.
            given: what it was given.
            batch: raw outputs of the model.

        Raises:
            UserError: a Python function of the pair raised an exception, or returned something
                else.

        """
        made = decoder_rows(self.interface, signature)
        return list(self.decoder.read(batch if made is None else made.made_of(given, batch)))

    def checksums(self, signature: Signature, batch: RawBatch) -> list[int]:
        """Return a CRC-32 of each row of raw outputs, without what the model leaves unwritten."""
        written = batch_with_unused_rows_zeroed(signature.outputs, self.makers, batch)
        return [zlib.crc32(row.tobytes()) for row in written.outputs]


@dataclass(frozen=True, slots=True)
class ModelReader:
    """Reads answers from outputs that a model could have given.

    Attributes:
        stage: output stage of the model's arm.
        signature: the model's signature.

    """

    stage: OutputStage
    signature: Signature

    def answers(self, given: Values, outputs: Sequence[Sequence[Values]]) -> list[Answer]:
        """Return one answer for each set of outputs.

        Args:
            given: the input that the model is given, in its shape.
            outputs: sets of all its outputs, each in its order, shape and dtype.

        """
        tensors = self.signature.outputs
        arrays = [np.stack(values) for values in zip(*outputs, strict=True)]
        rows = pack_rows((self.signature.input,), [np.stack([given] * len(outputs))])
        return self.stage.answers(
            self.signature, GivenRows(rows), RawBatch(pack_rows(tensors, arrays))
        )
