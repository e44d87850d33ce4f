"""MEMO: models mutated one from the other, by what mutations and models were good for before.

Algorithm 2 of the paper's §3.4: a seed is a model with a mutation. Which seed comes next is sampled
by Metropolis-Hastings from the seeds, sorted by their fitness (Equations 3 and 4). A mutant that
covers something new (Equation 1) takes the place of the model that it was made from.

Differences from the published code:

- It samples mutations alone, by Equation 3 without score(m), and draws the model uniformly. Here
  both are sampled, as the paper says.
- p is 0.05 as in the paper; the code has 0.4.
- The code adds diverse mutants to a pool of 50 models, and drops models at random when it is full.
  Here the mutant replaces the model (`UpdateSeeds`), whose counts it inherits.
- Its coverage is of layer types, pairs, inputs' ranks, dtypes and shapes, and values of parameters.
  Here it is `Coverage`.
- Models have at most eight operators.
- A parameter's options are its buckets, so that a scale, too, has a few. Scales and zero points,
  which Keras has not, are modes (CMode): they change what is computed, and no shape (CShape).
- Layers behind a changed one follow it. In the code they are built again as they were, and a mutant
  that then fails is lost.
- The code multiplies a layer's result by NaN, infinity or 0, in a layer of its own, so that nothing
  but NaN is left of all inputs. Here the layer is given a tensor of the model instead: one row of
  what such tensors are given has NaN, infinities and denormals among ordinary values, which is
  where a kernel that swallows them shows.

Differences from the paper: mutants are asked for in batches, so one counts as taken until it is
known that the device refused it; then the model that it was made from comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.drafts.baselines.structure_mutations import (
    added_layers,
    added_reshaping_layers,
    connected_layers,
    merged_layers,
)
from edgeflare.conform.drafts.cells import cell_parameters, with_setting
from edgeflare.conform.drafts.coverage import Bucket, Coverage
from edgeflare.conform.drafts.draft import (
    FRESH,
    Draft,
    DraftNode,
    DraftOutcome,
    NodeGraphs,
    rederived,
)
from edgeflare.conform.drafts.draft_mutation import DraftMutation, MutationContext, refed
from edgeflare.conform.drafts.drawing import setting_in
from edgeflare.conform.specification.parameter import OperatorParameter, ParameterKind

_MOST_TRIES = 4
"""Settings that are tried for one layer."""


def changed_modes(draft: Draft, context: MutationContext) -> Draft | None:
    """Change a mode, scale or zero point of one to five layers, to a new one if any is (CMode)."""
    return _changed(draft, context, ("mode", "quantization"))


def changed_shapes(draft: Draft, context: MutationContext) -> Draft | None:
    """Change a shape parameter of one to five layers, to a new one if any is (CShape)."""
    return _changed(draft, context, ("shape",))


def special_input(draft: Draft, context: MutationContext) -> Draft | None:
    """Give a layer a tensor of the model with NaN and infinities instead of a result (NaN)."""
    fed = [
        (at, operand)
        for at, node in enumerate(draft.nodes)
        for operand, value in enumerate(context.graphs.operands(node))
        if node.sources[operand] != FRESH and value.dtype.startswith("float")
    ]
    if not fed:
        return None
    at, operand = fed[int(context.rng.integers(len(fed)))]
    return Draft(refed(draft.nodes, at, operand, FRESH))


MUTATIONS: Mapping[str, DraftMutation] = {
    "NLA": added_layers,
    "LResh": added_reshaping_layers,
    "LMerg": merged_layers,
    "LConn": connected_layers,
    "CMode": changed_modes,
    "CShape": changed_shapes,
    "NaN": special_input,
}
"""The mutations of Table 2, by their names there."""

_P = 0.05
"""Parameter p of the geometric distribution of Equation 4."""

_MOST_FAILURES = 200
"""Mutations in a row that may give nothing before no more is drawn."""

SeedSelection = Callable[[NDArray[np.float64], int, np.random.Generator], int]
"""Given the fitness of all seeds and which was selected last, says which comes next."""


def metropolis_hastings(fitness: NDArray[np.float64], last: int, rng: np.random.Generator) -> int:
    """Select a seed by Equation 4; among seeds of equal fitness the order is random."""
    shuffled = rng.permutation(len(fitness))
    order = shuffled[np.argsort(-fitness[shuffled], kind="stable")]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    while True:
        proposed = int(rng.integers(len(fitness)))
        if rng.random() < (1 - _P) ** float(place[proposed] - place[last]):
            return proposed


def unguided(fitness: NDArray[np.float64], _last: int, rng: np.random.Generator) -> int:
    """Select any seed: MEMO_r, the paper's ablation of its guidance."""
    return int(rng.integers(len(fitness)))


@dataclass(frozen=True, slots=True)
class _Adoption:
    """A mutant that took the place of a model.

    Attributes:
        mutant: the new model.
        model: the place.
        mutation: the mutation that made it.

    """

    mutant: Draft
    model: int
    mutation: int


class MemoDrawing:
    """Draws by Algorithm 2: first the models that it begins with, then mutants."""

    def __init__(
        self,
        seeds: Sequence[Draft],
        coverage: Coverage,
        graphs: NodeGraphs,
        rng: np.random.Generator,
        select: SeedSelection = metropolis_hastings,
    ) -> None:
        """Begin.

        Args:
            seeds: the models, at least one.
            coverage: says what is new; is told what is drawn.
            graphs: builds nodes, those among them that the user's model has.
            rng: every draw.
            select: chooses the seed that comes next.

        """
        self._first = list(seeds)
        # The last one of a line is the model; those before it had its place, and have it again if
        # the device refuses it.
        self._lines = [[seed] for seed in seeds]
        self._context = MutationContext(coverage, graphs, rng)
        self._select, self._last = select, int(rng.integers(len(seeds) * len(MUTATIONS)))
        self._mutations = tuple(MUTATIONS.values())
        shape = (len(seeds), len(self._mutations))
        self._of_models, self._of_mutations = np.zeros(shape[0]), np.zeros(shape[1])
        self._selected = np.zeros(shape)
        self._adoptions: list[_Adoption] = []

    def ask(self, count: int) -> list[Draft]:
        """Return the next models."""
        drafts = self._first[:count]
        del self._first[:count]
        for draft in drafts:
            self._context.coverage.expect(draft)
        failures = 0
        while len(drafts) < count and failures < _MOST_FAILURES:
            mutant = self._mutant()
            failures = 0 if mutant is not None else failures + 1
            if mutant is not None:
                drafts.append(mutant)
        return drafts

    def tell(self, drafts: Sequence[Draft], outcomes: Sequence[DraftOutcome]) -> None:
        """Take what became of models that were asked for: the very objects, in any order."""
        for draft, outcome in zip(drafts, outcomes, strict=True):
            self._context.coverage.settle(draft, outcome)
            adoption = next(
                (pending for pending in self._adoptions if pending.mutant is draft), None
            )
            if adoption is not None:
                self._adoptions.remove(adoption)
                # What the mutant replaced is forgotten, or the mutant if the device refused it.
                line = self._lines[adoption.model]
                at = next((at for at, ancestor in enumerate(line) if ancestor is draft), None)
                if not outcome.whole:
                    self._of_models[adoption.model] -= 1
                    self._of_mutations[adoption.mutation] -= 1
                    if at is not None:
                        del line[at]
                elif at is not None:
                    del line[:at]

    def _mutant(self) -> Draft | None:
        """Apply one seed's mutation to its model (lines 5 to 12)."""
        # Equation 3: the scores of both, over how often the two were selected together.
        scores = self._of_models[:, None] + self._of_mutations[None, :]
        fitness = scores / (self._selected + 1)
        self._last = self._select(fitness.ravel(), self._last, self._context.rng)
        model, mutation = divmod(self._last, len(self._mutations))
        self._selected[model, mutation] += 1
        mutant = self._mutations[mutation](self._lines[model][-1], self._context)
        if mutant is None:
            return None
        if self._context.coverage.diverse(mutant) > 0:
            self._of_models[model] += 1
            self._of_mutations[mutation] += 1
            self._lines[model].append(mutant)
            self._adoptions.append(_Adoption(mutant, model, mutation))
        self._context.coverage.expect(mutant)
        return mutant


def _changed(
    draft: Draft, context: MutationContext, kinds: Sequence[ParameterKind]
) -> Draft | None:
    mutant = draft
    places = context.shuffled(range(len(draft.nodes)))
    for at in places[: context.change_count()]:
        for _ in range(_MOST_TRIES):
            node = _changed_node(mutant.nodes[at], context, kinds)
            if node is None:
                continue
            nodes = (*mutant.nodes[:at], node, *mutant.nodes[at + 1 :])
            whole = rederived(nodes, context.graphs)
            if (
                whole is not None
                and whole.nodes[at].configuration != mutant.nodes[at].configuration
            ):
                mutant = whole
                break
    return None if mutant is draft else mutant


def _changed_node(
    node: DraftNode, context: MutationContext, kinds: Sequence[ParameterKind]
) -> DraftNode | None:
    """Return a node with another setting, still fed as it was; None where none was found."""
    parameters = [
        cell_parameter
        for cell_parameter in cell_parameters(node.cell)
        if cell_parameter.kind in kinds
    ]
    if not parameters:
        return None
    bucket = _wanted_bucket(node, parameters, context)
    parameter = next(known for known in parameters if known.name == bucket[2])
    setting = setting_in(bucket, parameter.draw(context.rng), context.rng)
    if setting is None or setting == node.configuration[parameter.name]:
        return None
    changed = with_setting(node.cell, node.configuration, parameter.name, setting)
    return None if changed is None else replace(node, configuration=changed, given=None)


def _wanted_bucket(
    node: DraftNode, parameters: Sequence[OperatorParameter], context: MutationContext
) -> Bucket:
    """Return a bucket that was not invoked before, or any."""
    names = {known.name for known in parameters}
    new = [
        new_bucket
        for new_bucket in context.coverage.new_buckets(node.cell)
        if new_bucket[2] in names
    ]
    if new:
        return new[int(context.rng.integers(len(new)))]
    parameter = parameters[int(context.rng.integers(len(parameters)))]
    bucket = parameter.buckets[int(context.rng.integers(len(parameter.buckets)))]
    return (*node.cell, parameter.name, bucket)
