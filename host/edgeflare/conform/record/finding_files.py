"""The smallest model of a finding as files: what a vendor's bug tracker asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgeflare.array_file import NotArrays, encode_npz, read_npz
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftedModel, DraftNode, drafted
from edgeflare.conform.drafts.file_operators import (
    FileOperator,
    file_graph,
    file_operators,
    file_parts,
)
from edgeflare.conform.drafts.model_reading import graph_draft
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, Turns
from edgeflare.conform.graph_file import graph_file, signatures_file
from edgeflare.conform.operator_graph import OperatorGraph, Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_document import FoundFault
from edgeflare.conform.specification.activation_tensors import UnknownOperatorForm
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
        arrays: operands and answers by name: "input 0" and on, (rows, *shape); "other input 0" of
            what takes turns with the model; the answers of each arm, such as "device 0"; and "exact
            0", real values, of a model of one operator.

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
    turns: Turns | None = None,
) -> str:
    """Store a finding's model, what it is given and what it answers.

    Args:
        directory: the run directory.
        number: the finding's number.
        model: the finding's model.
        answers: each arm's answer, by the arm's name.
        exact: the exact answers, (rows, *shape) each; empty where none were computed.
        turns: how the model takes turns with its other; None where it does not.

    Returns:
        The path of the model, relative to the run directory; the arrays lie beside it.

    """
    others = () if turns is None or model.other is None else (model.other,)
    arrays = _numbered("input", model.operands)
    for other in others:
        arrays |= _numbered("other input", other.operands)
    for arm, answer in answers.items():
        arrays |= _numbered(arm, answer.outputs)
    arrays |= _numbered("exact", [right.values for right in exact])
    name = f"{FOLDER}/{number:06d}.tflite"
    graphs = (model.graph, *(other.graph for other in others))
    signed = turns in ("signatures", "parts")
    content = signatures_file(graphs) if signed else graph_file(*graphs)
    write_atomically(directory.inside(name), content)
    write_atomically(directory.inside(_arrays_beside(name)), encode_npz(arrays))
    return name


def load_finding(directory: RunDirectory, name: str) -> FindingFiles:
    """Return the files of a finding.

    Args:
        directory: the run directory.
        name: name of the model, as the document has it.

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
    return {f"{name} {at}": array for at, array in enumerate(arrays)}


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A finding's model.

    Attributes:
        finding: what the document says of it.
        files: as they are stored.
        draft: the operators as the file has them, whatever this version would build.
        model: the draft's graphs.

    """

    finding: FoundFault
    files: FindingFiles
    draft: Draft
    model: DraftedModel

    @property
    def is_graph(self) -> bool:
        """Whether it is of operators that are right alone, and wrong together."""
        return len(self.finding.smallest.operators) > 1 or bool(self.finding.arrangement)

    @property
    def operands(self) -> tuple[Values, ...]:
        """What the model is given; of one in parts also what the second signature is."""
        other = self.files.answers("other input") if self.finding.is_in_parts else ()
        return (*self.files.operands, *other)

    @property
    def whole(self) -> PosedModel:
        """The model with what it is given."""
        return PosedModel(self.model.graph, self.operands, self.finding.smallest.rows)


def stored_model(directory: RunDirectory, finding: FoundFault) -> StoredModel:
    """Return the model of a finding.

    Args:
        directory: the run directory.
        finding: as the document has it.

    Raises:
        UserError: a file is gone or damaged, or has an operator that this version does not know.

    """
    name = finding.smallest.file
    files = load_finding(directory, name)
    source = str(directory.path / name)
    if finding.arrangement or len(finding.smallest.operators) > 1:
        return _stored_graph(finding, files, source)
    operators = file_operators(files.model, source)
    graphs = {operator.place: _graph(operator, source) for operator in operators}
    draft = Draft(tuple(_nodes(operators, graphs, source)))
    found = StoredModel(finding, files, draft, drafted(draft, graphs))
    if not _fits(found):
        raise _not_as_stored(source)
    return found


def _stored_graph(finding: FoundFault, files: FindingFiles, source: str) -> StoredModel:
    """Return the model of operators that are wrong together."""
    graph = (file_parts if finding.is_in_parts else file_graph)(files.model, source)
    alone = tuple(graph.alone(place) for place in range(len(graph.nodes)))
    found = StoredModel(finding, files, graph_draft(graph), DraftedModel(graph, alone))
    if not _fits(found):
        raise _not_as_stored(source)
    return found


def _not_as_stored(source: str) -> UserError:
    return UserError(
        f"{source} is not what the arrays beside it were stored for: run `edgeflare conform` again"
    )


def _graph(one: FileOperator, source: str) -> OperatorGraph:
    if one.graph is None or one.name not in known_operators():
        raise UserError(
            f"{source}: {one.name} is no operator that this version of edgeflare can judge: use the"
            " version that found it"
        )
    return one.graph


def _nodes(
    operators: Sequence[FileOperator], graphs: Mapping[int, OperatorGraph], source: str
) -> Iterator[DraftNode]:
    written: dict[int, int] = {}
    for at, operator in enumerate(operators):
        try:
            reading = known_operators()[operator.name].read(graphs[operator.place])
        except UnknownOperatorForm as why:
            raise UserError(
                f"{source}: {operator.name} has a form that this version of edgeflare cannot judge"
                f" ({why}): use the version that found it"
            ) from None
        sources = tuple(written.get(tensor, FRESH) for tensor in operator.reads)
        yield DraftNode(
            operator.name, reading.type, reading.configuration, 0, sources, operator.place
        )
        # Nodes are read by their first results alone.
        written[operator.writes[0]] = at


def _fits(one: StoredModel) -> bool:
    """Return whether a model was stored that has operators, with operands that it takes."""
    takes = [one.model.graph.values[at] for at in one.model.graph.inputs]
    told = [node.operator for node in one.finding.smallest.operators]
    operands, rows = one.operands, one.finding.smallest.rows
    if [node.operator for node in one.draft.nodes] != told or len(takes) != len(operands):
        return False
    return all(
        operand.dtype == value.dtype and operand.shape == (rows, *value.shape)
        for operand, value in zip(operands, takes, strict=True)
    )
