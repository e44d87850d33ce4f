"""What runs models: the kernels of the device, or one of the host's kernel sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from edgeflare.conform.operator_graph import OperatorGraph, Values

RunFailureKind = Literal["refused", "crash", "hang", "error", "misshapen"]
"""Why a model gave no answer: the runtime refused it on loading; its process died; it took too
long; the runtime answered with an error; the answer has another shape or type than the model
says."""


Turns = Literal["shapes", "signatures", "parts"]
"""How two models take turns in one file: as one graph that is resized, or as two signatures, the
same graph or parts of one that share no more than constants. Each row is the model, the other, and
the model again, by an interpreter that is opened anew."""


@dataclass(frozen=True, slots=True)
class PosedModel:
    """A model, and what it is given.

    Attributes:
        graph: the model, of any number of operators.
        operands: one array for each of its inputs, (rows, *shape) in its dtype.
        constant_rows: how often a model is asked that is given nothing; without meaning otherwise.
        other: what takes turns with it in the same file, with as many rows, for arms that take
            turns; see `Turns`. None for no other.

    """

    graph: OperatorGraph
    operands: tuple[Values, ...]
    constant_rows: int = 1
    other: PosedModel | None = None

    @property
    def rows(self) -> int:
        """How often the model is asked."""
        return len(self.operands[0]) if self.operands else self.constant_rows


@dataclass(frozen=True, slots=True)
class RunFailure:
    """A model that gave no answer, run alone in a fresh process.

    Attributes:
        kind: why.
        detail: what is known: a signal, the runtime's message.

    """

    kind: RunFailureKind
    detail: str


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What came of a model.

    Attributes:
        outputs: one array for each of its outputs, (rows, *shape) in its dtype; () if it failed. Of
            a model that takes turns its outputs, those of the other, and its own again.
        failure: None if it answered.
        neighbours: the answer beside other models in one file was another than alone, which is the
            one that `outputs` has.
        corrupts: the model made innocent models die that ran after it in the same process.

    """

    outputs: tuple[Values, ...] = ()
    failure: RunFailure | None = None
    neighbours: bool = False
    corrupts: bool = False


class KernelArm(Protocol):
    """The kernels of one place.

    Attributes:
        name: "device", or a kernel set of the host.

    """

    name: str

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        """Run models, all of which have the same number of rows; answers in their order."""

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        """Run models each by itself in a fresh process, and say which answer otherwise then.

        Args:
            models: such as those that were found wrong.
            packed: what `run` answered for them. A model that corrupts others keeps that answer.

        """

    def on_other_threads(self) -> KernelArm | None:
        """Return the same kernels on another number of threads; None where they are told none.

        It is closed with this one.
        """

    def without_reset(self, rows: int) -> KernelArm | None:
        """Return the same kernels, which keep states from one row of a model to the next.

        It is closed with this one. None where they cannot.

        Args:
            rows: how many rows each model has that it runs.

        """

    def taking_turns(self, turns: Turns) -> KernelArm | None:
        """Return the same kernels, which run models in turn with their others.

        It is closed with this one. None where they cannot.
        """

    def close(self) -> None:
        """Release what runs models. Closing twice is no error."""
