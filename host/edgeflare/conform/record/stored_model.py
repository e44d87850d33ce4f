"""The smallest model of a finding, read back from its files as graphs that can be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgeflare.conform.drafts.draft import FRESH, Draft, DraftedModel, DraftNode, drafted
from edgeflare.conform.drafts.file_operators import FileOperator, file_operators
from edgeflare.conform.graphs.operator_graph import OperatorGraph, Values
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.record.conform_document import FoundFault
from edgeflare.conform.record.finding_files import FindingFiles, load_finding
from edgeflare.conform.specification.operator_specification import UnknownOperatorForm
from edgeflare.errors import UserError
from edgeflare.run.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A finding's model.

    Attributes:
        finding: what the document says of it.
        files: as they are stored.
        draft: its operators as the file has them, whatever this version would build.
        model: its graphs.

    """

    finding: FoundFault
    files: FindingFiles
    draft: Draft
    model: DraftedModel

    @property
    def operands(self) -> tuple[tuple[Values, ...], ...]:
        """For each operator what it is given alone; no values for what another one feeds."""
        return self.draft.by_node(self.files.operands)


def stored_model(directory: RunDirectory, finding: FoundFault) -> StoredModel:
    """Return the model of a finding.

    Args:
        directory: of the run.
        finding: as the document has it.

    Raises:
        UserError: a file is gone or damaged, or has an operator that this version does not know.

    """
    name = finding.smallest.file
    files = load_finding(directory, name)
    source = str(directory.path / name)
    operators = file_operators(files.model, source)
    graphs = {one.place: _graph(one, source) for one in operators}
    draft = Draft(tuple(_nodes(operators, graphs, source)))
    found = StoredModel(finding, files, draft, drafted(draft, graphs))
    if not _fits(found):
        raise UserError(
            f"{source} is not what the arrays beside it were stored for: run `edgeflare conform`"
            " again"
        )
    return found


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
    for at, one in enumerate(operators):
        try:
            reading = known_operators()[one.name].read(graphs[one.place])
        except UnknownOperatorForm as why:
            raise UserError(
                f"{source}: {one.name} has a form that this version of edgeflare cannot judge"
                f" ({why}): use the version that found it"
            ) from None
        sources = tuple(written.get(tensor, FRESH) for tensor in one.reads)
        yield DraftNode(one.name, reading.type, reading.configuration, 0, sources, one.place)
        # Nodes are read by their first results alone.
        written[one.writes[0]] = at


def _fits(one: StoredModel) -> bool:
    """Return whether a model was stored that has operators, with operands that it takes."""
    takes = [one.model.graph.values[at] for at in one.model.graph.inputs]
    told = [node.operator for node in one.finding.smallest.operators]
    operands, rows = one.files.operands, one.finding.smallest.rows
    if [node.operator for node in one.draft.nodes] != told or len(takes) != len(operands):
        return False
    return all(
        operand.dtype == value.dtype and operand.shape == (rows, *value.shape)
        for operand, value in zip(operands, takes, strict=True)
    )
