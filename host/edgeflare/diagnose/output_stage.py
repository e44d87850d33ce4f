"""The output stage of an arm: what reads answers from a model's raw outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch
from edgeflare.models.decoder_rows import decoder_rows
from edgeflare.models.evaluator import Signature
from edgeflare.models.pair_interface import PairInterface


@dataclass(frozen=True, slots=True)
class OutputStage:
    """What stands between a model's raw outputs and its answers.

    Attributes:
        interface: says what rows the decoder reads, which a Python function may make.
        decoder: reads them.

    """

    interface: PairInterface
    decoder: Decoder

    def answers(
        self, signature: Signature, inputs: NDArray[np.generic], batch: RawBatch
    ) -> list[Answer]:
        """Return the answer of each row.

        Args:
            signature: of the model.
            inputs: the rows that it was given.
            batch: its raw outputs.

        Raises:
            UserError: a Python function of the pair raised an exception, or returned something
                else.

        """
        made = decoder_rows(self.interface, signature)
        return list(self.decoder.read(batch if made is None else made.made_of(inputs, batch)))
