"""MEMO: models mutated one from the other, by what mutations and models were good for before.

Algorithm 2 of the paper's §3.4: a seed is a model with a mutation. Which seed comes next is sampled
by Metropolis-Hastings from the seeds, sorted by their fitness (Equations 3 and 4). A mutant that
covers something new (Equation 1) takes the place of the model that it was made from.

The first seeds are parts of the user's model, or drawn models. Algorithm 1 (§3.2) leaves a model
without what it repeats, for it is to be run many times. Within each block, layers go that repeat
one before them and change no shape; then blocks go that repeat one before them and change no rank.
What a layer is, is its cell and the buckets of its settings; its edges are the cells that feed it.

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

- It makes a new model with the same layers, pairs and inputs, layer by layer ("model
  deduplication"), which is another algorithm than the paper's.

Differences from the paper:

- Mutants are asked for in batches, so one counts as taken until it is known that the device refused
  it; then the model that it was made from comes back.
- The paper's blocks are those that the authors of a model named. Here a block ends wherever one
  tensor is all that later layers read, which is what the blocks that the paper describes have in
  common ("all blocks are sequentially connected"). In a chain of layers each is a block.
- Layers behind what is gone follow the tensor that they read now. Where one cannot, the repeated
  part stays.
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
from edgeflare.conform.drafts.cells import Cell, cell_parameters, with_setting
from edgeflare.conform.drafts.coverage import Bucket, Coverage, node_buckets
from edgeflare.conform.drafts.draft import (
    FRESH,
    Draft,
    DraftNode,
    DraftOutcome,
    NodeGraphs,
    rederived,
)
from edgeflare.conform.drafts.draft_mutation import (
    MOST_NODES,
    DraftMutation,
    MutationContext,
    kept_nodes,
    refed,
)
from edgeflare.conform.drafts.drawing import drawn_node, setting_in
from edgeflare.conform.specification.parameter import OperatorParameter, ParameterKind

_MOST_TRIES = 4
"""Settings that are tried for one layer."""

DRAWN_SEEDS = 50
"""Number of drawn seed models, as many as the pool of the published code holds."""


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


def model_seeds(model: Draft) -> list[Draft]:
    """Return a model of any length as models of as many operators as mutants have, in order.

    What a part reads of the one before is given to it.
    """
    places = range(len(model.nodes))
    return [kept_nodes(model, places[at : at + MOST_NODES]) for at in places[::MOST_NODES]]


def drawn_seeds(count: int, context: MutationContext) -> list[Draft]:
    """Return models of an operator at random and up to five that follow it.

    Fewer than asked for where no cell has a valid configuration.
    """
    seeds: list[Draft] = []
    cells = context.coverage.cells
    for at in range(count if cells else 0):
        if at % len(cells) == 0:
            order = context.shuffled(cells)
        node = drawn_node(order[at % len(cells)], context.coverage, context.graphs, context.rng)
        if node is not None:
            draft = Draft((node,))
            seeds.append(added_layers(draft, context) or draft)
    return seeds


_Layer = tuple[Cell, frozenset[Bucket]]
_Edges = tuple[Cell | None, ...]


def reduced(draft: Draft, graphs: NodeGraphs) -> Draft:
    """Return a draft without repeated layers and blocks.

    Args:
        draft: a draft of any length.
        graphs: builds its nodes.

    """
    return _without_blocks(_without_layers(draft, graphs), graphs)


def blocks(draft: Draft) -> list[range]:
    """Return the places of a draft's nodes, parted where a single tensor leads on."""
    found, begin = [], 0
    for end in range(1, len(draft.nodes) + 1):
        later = {
            source
            for node in draft.nodes[end:]
            for source in node.sources
            if source != FRESH and source < end
        }
        if later <= {end - 1}:
            found.append(range(begin, end))
            begin = end
    return found


def _without_layers(draft: Draft, graphs: NodeGraphs) -> Draft:
    """Reduce each block (lines 5 to 15)."""
    repeated = []
    for block in blocks(draft):
        layers: set[_Layer] = set()
        edges: set[_Edges] = set()
        for at in block:
            layer, feeding = _properties(draft, at)
            if layer in layers and feeding in edges:
                repeated.append(at)
            layers.add(layer)
            edges.add(feeding)
    # From the last: what is gone moves nothing that is still to go.
    for at in reversed(repeated):
        node = draft.nodes[at]
        if node.sources[0] == FRESH:
            continue
        before = graphs.result(draft.nodes[node.sources[0]])
        after = graphs.result(node)
        if (before.dtype, before.shape) == (after.dtype, after.shape):
            draft = _without(draft, range(at, at + 1), node.sources[0], graphs) or draft
    return draft


def _without_blocks(draft: Draft, graphs: NodeGraphs) -> Draft:
    """Remove repeated blocks (lines 16 to 21)."""
    diverse: set[tuple[tuple[_Layer, _Edges], ...]] = set()
    repeated = []
    for block in blocks(draft):
        properties = tuple(_properties(draft, at) for at in block)
        if properties in diverse:
            repeated.append(block)
        diverse.add(properties)
    for block in reversed(repeated):
        if block.start == 0:
            continue
        # All that a block reads of the model is the last result before it.
        before = graphs.result(draft.nodes[block.start - 1])
        after = graphs.result(draft.nodes[block.stop - 1])
        if (before.dtype, len(before.shape)) == (after.dtype, len(after.shape)):
            draft = _without(draft, block, block.start - 1, graphs) or draft
    return draft


def _properties(draft: Draft, at: int) -> tuple[_Layer, _Edges]:
    node = draft.nodes[at]
    feeding = tuple(
        None if source == FRESH else draft.nodes[source].cell for source in node.sources
    )
    return (node.cell, frozenset(node_buckets(node))), feeding


def _without(draft: Draft, gone: range, entry: int, graphs: NodeGraphs) -> Draft | None:
    """Return a draft without some nodes; what read the last of them reads another node."""
    led = tuple(
        replace(
            node,
            sources=tuple(entry if source == gone.stop - 1 else source for source in node.sources),
        )
        for node in draft.nodes
    )
    kept: Sequence[int] = [at for at in range(len(led)) if at not in gone]
    return rederived(kept_nodes(Draft(led), kept).nodes, graphs)
