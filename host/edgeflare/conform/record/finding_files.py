"""The smallest model of a finding as files: what a vendor's bug tracker asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgeflare.array_file import NotArrays, encode_npz, read_npz
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare.conform.graphs.operator_graph import Values
from edgeflare.conform.specification.exact_answer import ExactAnswer
from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.run_directory import RunDirectory

FOLDER = "findings"


@dataclass(frozen=True, slots=True)
class FindingFiles:
    """The files of a finding, read back.

    Attributes:
        model: the `.tflite` file.
        arrays: by name: "input 0" and on, (rows, *shape); the answers of each arm, such as
            "device 0"; and "exact 0", real values, of a model of one operator.

    """

    model: bytes
    arrays: Mapping[str, Values]

    @property
    def operands(self) -> tuple[Values, ...]:
        """What the model is given."""
        return self.answers("input")

    def answers(self, arm: str) -> tuple[Values, ...]:
        """Return the answers of an arm; () if it gave none."""
        names = (f"{arm} {at}" for at in range(len(self.arrays)))
        return tuple(self.arrays[name] for name in names if name in self.arrays)


def store_finding(
    directory: RunDirectory,
    number: int,
    model: PosedModel,
    answers: Mapping[str, ModelAnswer],
    exact: Sequence[ExactAnswer],
) -> str:
    """Store a finding's model, what it is given and what it answers.

    Args:
        directory: of the run.
        number: of the finding.
        model: it.
        answers: of each arm.
        exact: the exact answers, (rows, *shape) each; empty where none were computed.

    Returns:
        The path of the model, relative to the run directory; the arrays lie beside it.

    """
    arrays = _numbered("input", model.operands)
    for arm, answer in answers.items():
        arrays |= _numbered(arm, answer.outputs)
    arrays |= _numbered("exact", [one.values for one in exact])
    name = f"{FOLDER}/{number:06d}.tflite"
    write_atomically(directory.inside(name), graph_file(model.graph))
    write_atomically(directory.inside(_arrays_beside(name)), encode_npz(arrays))
    return name


def load_finding(directory: RunDirectory, name: str) -> FindingFiles:
    """Return the files of a finding.

    Args:
        directory: of the run.
        name: of the model, as the document has it.

    Raises:
        UserError: one leads out of the run directory, or is gone or damaged.

    """
    try:
        arrays = read_npz(directory.read(_arrays_beside(name))).arrays
        return FindingFiles(directory.read(name), arrays)
    except (NotArrays, OSError):
        raise UserError(
            f"{directory.path / name} or the arrays beside it are gone or damaged: run `edgeflare"
            " conform` again"
        ) from None


def _arrays_beside(name: str) -> str:
    return name.removesuffix(".tflite") + ".npz"


def _numbered(name: str, arrays: Sequence[Values]) -> dict[str, Values]:
    return {f"{name} {at}": one for at, one in enumerate(arrays)}
