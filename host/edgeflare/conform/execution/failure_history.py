"""How likely a model is to give no answer, from what became of those like it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edgeflare.conform.execution.failing_models import MissingOperator, missing_operator
from edgeflare.conform.execution.kernel_arm import PosedModel, RunFailure
from edgeflare.conform.operator_graph import GraphNode, GraphValue, OperatorGraph

_ORDINARY = 0.001
"""Share of models that give no answer, before anything is known of their kind."""

_WITHOUT_VALUES = 0.03
"""Share of models with a dimension of zero that give no answer: 19 of 780 died in a trial."""

_WEIGHT = 10.0
"""Models of a kind that these shares count as much as."""

_WEIGHT_WITHOUT_VALUES = 30.0
"""Models without values of any kind that their share counts as much as: where they do no harm they
are soon run among others."""

_WEIGHT_OF_RANKS = 3.0
"""Models of given ranks that the share of their kind counts as much as: an accelerator refuses an
operator at some ranks, and else never."""

_Kind = tuple[str, tuple[str, ...], bool]
_Ranks = tuple[int, ...]


@dataclass(slots=True)
class _KindFate:
    failed: int = 0
    run: int = 0
    hung: bool = False
    corrupts: bool = False
    depends: bool = False
    lived: PosedModel | None = None

    def add(self, *, failed: bool) -> None:
        self.run += 1
        self.failed += failed

    def share(self, prior: float, weight: float) -> float:
        """Return the share that fails, where a share before that counts as much as some models."""
        return (self.failed + prior * weight) / (self.run + weight)


class FailureHistory:
    """What became of models in one place, by the kinds of their operators.

    A kind is the operator, the types of its tensors, and whether one of them has no values. Its
    models are told apart by the ranks of their tensors.
    """

    def __init__(self) -> None:
        self._tallies: dict[_Kind, _KindFate] = {}
        self._of_ranks: dict[tuple[_Kind, _Ranks], _KindFate] = {}
        self._without_values = _KindFate()
        self._missing: dict[MissingOperator, RunFailure] = {}

    def odds(self, graph: OperatorGraph) -> float:
        """Return how likely it is that a model keeps others from answering, from 0 to 1."""
        if self.corrupts(graph):
            return 1.0
        lives = 1.0
        for node in graph.nodes:
            kind, ranks = _kind(graph, node), _ranks(graph, node)
            prior = _ORDINARY
            if kind[2]:
                prior = self._without_values.share(_WITHOUT_VALUES, _WEIGHT_WITHOUT_VALUES)
            share = self._tallies.get(kind, _KindFate()).share(prior, _WEIGHT)
            alike = self._of_ranks.get((kind, ranks), _KindFate())
            lives *= 1 - alike.share(share, _WEIGHT_OF_RANKS)
        return 1 - lives

    def hung(self, graph: OperatorGraph) -> bool:
        """Whether a model of such an operator was given all the time that there is, and hung."""
        return any(self._tallies.get(kind, _KindFate()).hung for kind in _kinds(graph))

    def corrupts(self, graph: OperatorGraph) -> bool:
        """Whether a model of such an operator made others die that ran after it."""
        return any(self._tallies.get(kind, _KindFate()).corrupts for kind in _kinds(graph))

    def depends(self, graph: OperatorGraph) -> bool:
        """Whether the answer of a model of such an operator depended on its neighbours."""
        return any(self._tallies.get(kind, _KindFate()).depends for kind in _kinds(graph))

    def witnesses(self, rows: int) -> list[PosedModel]:
        """Return models that lived, one of each kind that does no harm, with so many rows."""
        known = [tally.lived for tally in self._tallies.values() if not tally.corrupts]
        return [model for model in known if model is not None and model.rows == rows]

    def refusal(self, graph: OperatorGraph) -> RunFailure | None:
        """Return why a model cannot load: the runtime lacks an operator, or that version of it."""
        for node in graph.nodes:
            for version in (node.version, None):
                if known := self._missing.get((node.operator, version)):
                    return known
        return None

    def note(self, model: PosedModel, failure: RunFailure | None) -> None:
        """Note what became of a model; of several operators it is not known which has failed."""
        if failure is not None:
            if missing := missing_operator(failure):
                self._missing[missing] = failure
            if len(model.graph.nodes) > 1:
                return
        for node in model.graph.nodes:
            kind, ranks = _kind(model.graph, node), _ranks(model.graph, node)
            tally = self._tallies.setdefault(kind, _KindFate())
            tally.add(failed=failure is not None)
            self._of_ranks.setdefault((kind, ranks), _KindFate()).add(failed=failure is not None)
            if kind[2]:
                self._without_values.add(failed=failure is not None)
            tally.hung |= failure is not None and failure.kind == "hang"
            if failure is None and len(model.graph.nodes) == 1:
                tally.lived = model

    def note_dependence(self, graph: OperatorGraph) -> None:
        """Note that a model's answer depends on its neighbours."""
        if len(graph.nodes) == 1:
            for kind in _kinds(graph):
                self._tallies.setdefault(kind, _KindFate()).depends = True

    def note_corruption(self, graph: OperatorGraph) -> None:
        """Note that a model made others die; of several operators it is not known which did."""
        if len(graph.nodes) == 1:
            for kind in _kinds(graph):
                self._tallies.setdefault(kind, _KindFate()).corrupts = True


def _kinds(graph: OperatorGraph) -> Iterator[_Kind]:
    return (_kind(graph, node) for node in graph.nodes)


def _kind(graph: OperatorGraph, node: GraphNode) -> _Kind:
    tensors = _tensors(graph, node)
    return (
        node.operator,
        tuple(tensor.dtype for tensor in tensors),
        not all(tensor.size for tensor in tensors),
    )


def _ranks(graph: OperatorGraph, node: GraphNode) -> _Ranks:
    return tuple(len(tensor.shape) for tensor in _tensors(graph, node))


def _tensors(graph: OperatorGraph, node: GraphNode) -> list[GraphValue]:
    both = (*graph.operands(node), *graph.results(node))
    return [value for value in both if value is not None]
