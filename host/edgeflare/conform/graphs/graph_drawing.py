"""Graphs drawn in stages: single operators, all pairs, triples of what was found, and any."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final

import numpy as np

from edgeflare.conform.drafts.cells import (
    Cell,
    cell_parameters,
    drawn_configuration,
    drawn_seed,
    with_setting,
)
from edgeflare.conform.drafts.draft import DraftNode, NodeGraphs, fits
from edgeflare.conform.drafts.feeding import node_fed
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.graphs.graph_verdict import JudgedGraph
from edgeflare.conform.operator_graph import (
    ABSENT,
    GraphNode,
    GraphValue,
    OperatorGraph,
    Quantization,
    Values,
)
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import DTYPES
from edgeflare.conform.specification.operand import OperandStyle, operand_values

_STYLES: Final[tuple[OperandStyle, ...]] = ("uniform", "uniform")
"""Values of the two rows that a graph is given: each row is an invocation, the second of which
finds what the first has left. Special values would show as undefined."""

_SHAPES: Final = ((1, 4, 4, 8), (1, 8), (2, 3, 4), (6,))
"""Shapes of what is given, those first that most operators and all accelerators take."""

_QUANTIZATIONS: Final[Mapping[str, Quantization]] = {
    "int8": Quantization((0.0625,), -3),
    "uint8": Quantization((0.0625,), 125),
    "int16x8": Quantization((2.0**-11,), 0),
}

_FIRST_TYPES: Final = ("float32", "int8")
"""Types whose pairs are tried first: most models are of these."""

_COMMON: Final = frozenset(
    {
        *("ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D"),
        *("FULLY_CONNECTED", "LOGISTIC", "MAXIMUM", "MAX_POOL_2D", "MEAN", "MUL", "PAD"),
        *("REDUCE_MAX", "RELU", "RESHAPE", "RESIZE_BILINEAR", "SLICE", "SOFTMAX", "SPLIT"),
        *("STRIDED_SLICE", "SUB", "SUM", "TANH", "TRANSPOSE", "TRANSPOSE_CONV"),
    }
)
"""Operators that most models have, whose pairs are tried first: a slow device does not come to the
thousands of others."""

_TRIES: Final = 4
"""Draws of a node until it takes what it is to be fed with."""

_REFUSALS: Final = 3
"""Graphs with a cell that gave no answer alone, and never one, after which it is drawn no more."""

_SHOWN: Final = 12
"""Failing graphs of the same operators, drawn after which pairs of them are drawn no more."""

_ANSWERED: Final = 3
"""Operators whose operand is an output, too, which no operator has to do with."""

_SCALES: Final = 12
"""Scales of the result of a quantized operator that reads one tensor twice, all powers of 2: where
a kernel rounds otherwise then, values half-way between two steps show it, and hardly any others."""

_SEVERAL: Final = ("SPLIT", "SPLIT_V", "UNPACK")
"""Operators that are tried with several results: with one they do nothing."""

_VIEWS: Final = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE")
"""Operators whose results runtimes let share the memory of their operands."""

_VIEW_CHAINS: Final = 4
"""Graphs with a view of a view for each way in which an operator is tried."""

_FIRST_VIEW: Final = 2 / 3
"""Share of them in which the first view is read later, and not what it is a view of."""

_MOST_NODES: Final = 10
"""Operators of a drawn graph."""

_PAIRS_EACH: Final = 4
"""Pairs for each drawn graph: of a pair that is wrong there is one, and chains of views are found
before."""

_MOST_SIZE: Final = 2048
"""Values of a tensor in a drawn graph."""


@dataclass(frozen=True, slots=True)
class _Variant:
    """An operator, and how it is fed.

    Attributes:
        node: the operator, as it is fed with a base value.
        twice: whether its first two operands are the same tensor.

    """

    node: DraftNode
    twice: bool = False


DrawnGraph = tuple[tuple[_Variant, ...], PosedModel]
"""A graph with what it is given, and the variants of its operators in their order."""


@dataclass(slots=True)
class GraphBuilder:
    """A graph that grows.

    Attributes:
        rng: draws the values that it is given.
        graphs: builds the operators.
        values: the tensors.
        nodes: the operators.
        operands: what the graph is given, by tensor: (rows, *shape).

    """

    rng: np.random.Generator
    graphs: NodeGraphs
    values: list[GraphValue] = field(default_factory=list)
    nodes: list[GraphNode] = field(default_factory=list)
    operands: dict[int, Values] = field(default_factory=dict)

    def given(self, value: GraphValue, values: Values) -> int:
        """Add a tensor that the graph is given, and return it."""
        self.values.append(value)
        self.operands[len(self.values) - 1] = values
        return len(self.values) - 1

    def add(
        self, node: DraftNode, reads: Mapping[int, int], *, shared: bool = False
    ) -> tuple[int, ...] | None:
        """Add an operator, and return the tensors that it writes.

        Args:
            node: the operator.
            reads: the tensors that it reads, by which of its given operands they are; it is given
                the others.
            shared: whether its constants may be those of another operator.

        Returns:
            None, with nothing added, where it cannot be fed so, or a tensor would have no values.

        """
        values = {at: self.values[one] for at, one in reads.items()}
        fed = node_fed(node, values, self.graphs) if values else node
        if fed is None:
            return None
        graph = self.graphs.graph(fed)
        if any(graph.values[at].size == 0 for at in (*graph.inputs, *graph.outputs)):
            return None  # nothing to be wrong
        specification = known_operators()[fed.operator]
        rows = [specification.operands(graph, style, self.rng) for style in _STYLES]
        places: dict[int, int] = {}
        for at, tensor in enumerate(graph.inputs):
            given = np.stack([row[at] for row in rows])
            places[tensor] = reads[at] if at in reads else self.given(graph.values[tensor], given)
        for tensor, value in enumerate(graph.values):
            if tensor not in places:
                places[tensor] = self._constant(value) if shared else ABSENT
            if places[tensor] == ABSENT:
                self.values.append(value)
                places[tensor] = len(self.values) - 1
        (one,) = graph.nodes
        inputs = tuple(at if at == ABSENT else places[at] for at in one.inputs)
        outputs = tuple(places[at] for at in one.outputs)
        self.nodes.append(replace(one, inputs=inputs, outputs=outputs))
        return outputs

    def _constant(self, value: GraphValue) -> int:
        """Return a constant that is equal to a value, or `ABSENT`."""
        if value.values is None:
            return ABSENT
        for at, one in enumerate(self.values):
            if (
                one.values is not None
                and fits(one, value)
                and np.array_equal(one.values, value.values)
            ):
                return at
        return ABSENT

    def posed(self, outputs: Sequence[int]) -> PosedModel:
        """Return the graph with what it is given, answering some of its tensors."""
        inputs = tuple(sorted(self.operands))
        graph = OperatorGraph(tuple(self.values), tuple(self.nodes), inputs, tuple(outputs))
        return PosedModel(graph, tuple(self.operands[at] for at in inputs), len(_STYLES))


class GraphDrawing:
    """Draws graphs, stage after stage, of operators that the device takes.

    What is drawn depends on the generator and on what it was told, so that a run is resumed by
    telling it the same again.

    Attributes:
        pairs: the ordered pairs of cells that were drawn.

    """

    def __init__(self, cells: Sequence[Cell], rng: np.random.Generator) -> None:
        """Begin.

        Args:
            cells: operators and types.
            rng: every draw.

        """
        self.pairs: set[tuple[Cell, Cell]] = set()
        self._cells, self._rng, self._graphs = tuple(cells), rng, NodeGraphs()
        self._unanswered: Counter[Cell] = Counter()
        self._answered: set[Cell] = set()
        self._shown: Counter[tuple[str, ...]] = Counter()
        self._failing: dict[tuple[Cell, Cell], tuple[_Variant, _Variant]] = {}
        self._variants = {cell: tuple(self._variants_of(cell)) for cell in self._cells}
        self._pending: dict[int, tuple[tuple[Cell, ...], tuple[_Variant, ...]]] = {}
        self._stages = chain(
            self._answered_inputs(),
            self._singles(),
            self._first_pairs(),
            self._triples(),
            self._views(),
            self._pairs_among_others(),
            self._rescaled(),
            self._rest(),
        )

    @property
    def taken(self) -> tuple[int, int]:
        """How many operators and types gave an answer alone, and of how many."""
        return len(self._answered), len(self._cells)

    def ask(self, count: int) -> list[PosedModel]:
        """Return the next graphs, fewer than asked for only where there are no more."""
        found: list[PosedModel] = []
        self._pending = {}
        for variants, model in self._stages:
            self._pending[len(found)] = tuple(one.node.cell for one in variants), variants
            found.append(model)
            if len(found) == count:
                break
        return found

    def tell(self, judged: Sequence[JudgedGraph]) -> None:
        """Take what became of the graphs that were asked for last, in their order."""
        for at, one in enumerate(judged):
            cells, variants = self._pending[at]
            for cell, taken in zip(cells, one.taken, strict=True):
                if taken:
                    self._answered.add(cell)
                elif taken is not None:
                    self._unanswered[cell] += 1
            if one.fails:
                self._shown[tuple(operator for operator, _ in cells)] += 1
                if len(variants) == 2:
                    self._failing.setdefault((cells[0], cells[1]), (variants[0], variants[1]))

    def _is_taken(self, cell: Cell) -> bool:
        return cell in self._answered or self._unanswered[cell] < _REFUSALS

    def _variants_of(self, cell: Cell) -> Iterator[_Variant]:
        """Yield the ways in which an operator is tried: its constants, and one operand twice."""
        choices = next((p for p in cell_parameters(cell) if p.name == "constant"), None)
        for constant in ("none", "second") if choices is not None else (None,):
            found = self._plain(cell, constant)
            if found is None:
                continue
            yield _Variant(found)
            if constant != "second" and self._takes_twice(found):
                yield _Variant(found, twice=True)

    def _plain(self, cell: Cell, constant: str | None) -> DraftNode | None:
        """Return an operator with settings as plain as can be, or None."""
        tries = _TRIES if cell[0] not in _SEVERAL else 4 * _TRIES
        for shape in _SHAPES:
            for _ in range(tries):
                drawn = drawn_configuration(cell, self._rng)
                if drawn is None:
                    return None
                for one in cell_parameters(cell):
                    wanted = constant if one.name == "constant" and constant else one.simplest
                    if one.kind != "mode" and "broadcast" not in one.name:
                        continue
                    drawn = with_setting(cell, drawn, one.name, wanted) or drawn
                node = DraftNode(*cell, drawn, drawn_seed(self._rng), ())
                fed = node_fed(node, {0: base_value(cell[1], shape)}, self._graphs)
                if fed is not None and cell[0] in _SEVERAL and not self._has_several(fed):
                    continue
                if fed is not None and (constant is None or drawn["constant"] == constant):
                    return fed
        return None

    def _has_several(self, node: DraftNode) -> bool:
        """Return whether an operator has two results that another one can read."""
        graph = self._graphs.graph(node)
        several = [graph.values[at] for at in graph.outputs[:2]]
        return len(several) > 1 and fits(*several)

    def _takes_twice(self, node: DraftNode) -> bool:
        operands = self._graphs.operands(node)
        if len(operands) < 2:
            return False
        return node_fed(node, {0: operands[0], 1: operands[0]}, self._graphs) is not None

    def _answered_inputs(self) -> Iterator[DrawnGraph]:
        """Yield a few operators whose operand is answered, too: apart, since it hides all else."""
        common = [one for one in self._cells if _rank(one) == 0] or self._cells
        for cell in self._shuffled(common)[:_ANSWERED]:
            for variant in self._variants[cell][:1]:
                builder = GraphBuilder(self._rng, self._graphs)
                written = self._first(builder, variant)
                if written is not None and builder.operands:
                    yield (variant,), builder.posed((next(iter(builder.operands)), *written))

    def _singles(self) -> Iterator[DrawnGraph]:
        """Yield operators alone, of which one tensor is two operands, or a result is not read."""
        for cell in self._shuffled(self._cells):
            for variant in self._variants[cell]:
                yield from self._single(variant)

    def _rescaled(self) -> Iterator[DrawnGraph]:
        """Yield quantized operators that read a tensor twice, with other scales of the result."""
        for cell in self._shuffled(self._cells):
            for variant in self._variants[cell]:
                if variant.twice and "output_scale" in variant.node.configuration:
                    for _ in range(_SCALES if self._is_taken(cell) else 0):
                        yield from self._single(self._with_scale(variant))

    def _single(self, variant: _Variant) -> Iterator[DrawnGraph]:
        builder = GraphBuilder(self._rng, self._graphs)
        written = self._first(builder, variant)
        if written is not None and variant.twice:
            yield (variant,), builder.posed(written)
        if written is not None and len(written) > 1:
            yield (variant,), builder.posed(written[-1:])

    def _with_scale(self, variant: _Variant) -> _Variant:
        scale = 2.0 ** int(self._rng.integers(-8, 3))
        node = variant.node
        drawn = {**node.configuration, "output_scale": scale}
        fault = known_operators()[node.operator].invalid(node.type, drawn)
        return variant if fault else _Variant(replace(node, configuration=drawn), twice=True)

    def _first_pairs(self) -> Iterator[DrawnGraph]:
        """Yield the pairs of common operators, in the types that most models have."""
        every = [one for one in self._every() if _rank(one.node.cell) == 0]
        for pair in self._pairs(every, every):
            yield from self._of_pair(pair)

    def _pairs_among_others(self) -> Iterator[DrawnGraph]:
        """Yield these pairs once more, the first result of which is no output.

        A third operator reads one of the two results.
        """
        every = [one for one in self._every() if _rank(one.node.cell) == 0]
        for pair in self._pairs(every, every):
            drawn = self._among_others(pair, every)
            if drawn is not None:
                yield drawn

    def _rest(self) -> Iterator[DrawnGraph]:
        """Yield all other pairs and drawn graphs in turn, and these without an end."""
        every = self._every()
        first = [one for one in every if _rank(one.node.cell) == 0]
        rest = [one for one in every if _rank(one.node.cell) > 0]
        several = chain(self._pairs(rest, every), self._pairs(first, rest))
        pairs = (
            drawn
            for pair in several
            for drawn in (*self._of_pair(pair), self._among_others(pair, first or every))
            if drawn is not None
        )
        for drawn in self._any():
            yield drawn
            yield from islice(pairs, _PAIRS_EACH)
        yield from pairs

    def _every(self) -> list[_Variant]:
        return [one for cell in self._cells for one in self._variants[cell]]

    def _pairs(
        self, makers: Sequence[_Variant], takers: Sequence[_Variant]
    ) -> Iterator[tuple[_Variant, _Variant]]:
        """Yield every pair of which the second may take what the first writes, in random order."""
        readers: dict[str, list[_Variant]] = defaultdict(list)
        for one in takers:
            if operands := self._graphs.operands(one.node):
                readers[operands[0].dtype].append(one)
        both = [
            (first, second)
            for first in makers
            for second in readers[self._graphs.result(first.node).dtype]
        ]
        keys = self._rng.random(len(both))
        for at in sorted(range(len(both)), key=lambda at: (_lateness(both[at]), keys[at])):
            if self._is_left(both[at]):
                yield both[at]

    def _among_others(
        self, pair: tuple[_Variant, _Variant], others: Sequence[_Variant]
    ) -> DrawnGraph | None:
        builder = GraphBuilder(self._rng, self._graphs)
        made = self._first(builder, pair[0])
        if made is None:
            return None
        reads = {0: made[0], 1: made[0]} if pair[1].twice else {0: made[0]}
        written = self._reading(builder, pair[1], reads)
        if written is None:
            return None
        third = others[int(self._rng.integers(len(others)))]
        before = self._rng.random() < 1 / 2
        read = builder.add(third.node, {0: made[0] if before else written[0]})
        if read is None:
            return pair, builder.posed(written)
        return (*pair, third), builder.posed((*written, *read) if before else read)

    def _is_left(self, variants: Sequence[_Variant]) -> bool:
        cells = [one.node.cell for one in variants]
        shown = self._shown[tuple(operator for operator, _ in cells)]
        return shown < _SHOWN and all(map(self._is_taken, cells))

    def _of_pair(self, pair: tuple[_Variant, _Variant]) -> Iterator[DrawnGraph]:
        """Yield the graphs of a pair, both results answered, or the last one alone."""
        builder = GraphBuilder(self._rng, self._graphs)
        made = self._first(builder, pair[0])
        if made is None:
            return
        reads = [{0: made[0], 1: made[0]} if pair[1].twice else {0: made[0]}]
        if pair[1].twice and len(made) > 1:
            reads.append({0: made[0], 1: made[1]})
        for one in reads:
            grown = replace_lists(builder)
            written = self._reading(grown, pair[1], one)
            if written is None:
                continue
            self.pairs.add((pair[0].node.cell, pair[1].node.cell))
            yield pair, grown.posed((*made, *written))
            if len(made) > 1:
                yield pair, grown.posed(written)

    def _reading(
        self, builder: GraphBuilder, variant: _Variant, reads: Mapping[int, int]
    ) -> tuple[int, ...] | None:
        """Add an operator that reads some tensors, with other settings if its own do not fit."""
        written = builder.add(variant.node, reads)
        for _ in range(_TRIES):
            drawn = drawn_configuration(variant.node.cell, self._rng)
            if written is not None or drawn is None or variant.twice:
                break
            written = builder.add(replace(variant.node, configuration=drawn), reads)
        return written

    def _triples(self) -> Iterator[DrawnGraph]:
        """Yield the pairs that fail with a third operator behind them, and before them."""
        for first, second in list(self._failing.values()):
            for cell in self._shuffled(self._cells):
                for third in self._variants[cell][:1] if self._is_taken(cell) else ():
                    for three in ((first, second, third), (third, first, second)):
                        if self._shown[tuple(v.node.operator for v in three)] >= 1:
                            continue
                        model = self._chain(three)
                        if model is not None:
                            yield three, model

    def _views(self) -> Iterator[DrawnGraph]:
        """Yield views of views, of which an operator reads the last, and another the first later.

        Views share memory, in which an operator may write its result over its operand.
        """
        for cell in self._shuffled(self._cells):
            for variant in self._variants[cell]:
                for _ in range(_VIEW_CHAINS if self._is_taken(cell) else 0):
                    drawn = self._with_views(variant)
                    if drawn is not None:
                        yield drawn

    def _with_views(self, variant: _Variant) -> DrawnGraph | None:
        operands = self._graphs.operands(variant.node)
        dtype = operands[0].dtype if operands else ""
        made = [
            cell
            for cell in self._cells
            if DTYPES[cell[1]] == dtype and self._is_taken(cell) and self._variants[cell]
        ]
        views = [cell for cell in made if cell[0] in _VIEWS]
        if not views:
            return None
        late = views if self._rng.random() < 1 / 2 else made
        chain_ = [self._any_of(made), self._any_of(views), self._any_of(views), variant]
        builder, last, tensors = GraphBuilder(self._rng, self._graphs), None, list[int]()
        used = (*chain_, self._any_of(late))
        for one in used:
            reads = {0: last} if last is not None else {}
            if len(tensors) == len(chain_):  # the last one reads an earlier view
                reads = {0: tensors[1 if self._rng.random() < _FIRST_VIEW else 0]}
            elif one.twice and reads:
                reads[1] = reads[0]
            written = builder.add(one.node, reads)
            if written is None:
                return None
            last = written[0]
            tensors.append(last)
        return self._with_reader(builder, used, tensors, made)

    def _with_reader(
        self,
        builder: GraphBuilder,
        used: tuple[_Variant, ...],
        tensors: Sequence[int],
        made: Sequence[Cell],
    ) -> DrawnGraph:
        """Return a graph, with what reads a result that may be written over its operand.

        It is no output: that is not written over its operand.
        """
        *_, written, last = tensors
        after = self._any_of(made)
        read = builder.add(after.node, {0: written}) if self._rng.random() < 1 / 2 else None
        if read is None:
            return used, builder.posed((last,))
        return (*used, after), builder.posed((read[0], last))

    def _any_of(self, cells: Sequence[Cell]) -> _Variant:
        cell = cells[int(self._rng.integers(len(cells)))]
        return self._drawn_settings(self._variants[cell][0])

    def _drawn_settings(self, variant: _Variant) -> _Variant:
        """Return a view with other settings, such as another shape, and all else as it is."""
        cell = variant.node.cell
        drawn = drawn_configuration(cell, self._rng) if cell[0] in _VIEWS else None
        if drawn is None:
            return variant
        return _Variant(replace(variant.node, configuration=drawn))

    def _chain(self, variants: Sequence[_Variant]) -> PosedModel | None:
        builder = GraphBuilder(self._rng, self._graphs)
        made = self._first(builder, variants[0])
        outputs: list[int] = []
        for variant in variants[1:]:
            if made is None:
                return None
            outputs += made
            made = builder.add(
                variant.node, {0: made[0], 1: made[0]} if variant.twice else {0: made[0]}
            )
        return None if made is None else builder.posed((*outputs, *made))

    def _first(self, builder: GraphBuilder, variant: _Variant) -> tuple[int, ...] | None:
        """Add an operator that is given all that it reads."""
        if not variant.twice:
            return builder.add(variant.node, {})
        graph = self._graphs.graph(variant.node)
        specification = known_operators()[variant.node.operator]
        rows = [specification.operands(graph, style, self._rng)[0] for style in _STYLES]
        tensor = builder.given(graph.values[graph.inputs[0]], np.stack(rows))
        return builder.add(variant.node, {0: tensor, 1: tensor})

    def _any(self) -> Iterator[DrawnGraph]:
        """Yield graphs of any operators that the device takes, without an end."""
        types = sorted({type_ for _, type_ in self._cells})
        failures = 0
        while failures < _MOST_FAILURES:
            cells = [one for one in self._cells if self._variants[one] and self._is_taken(one)]
            first = [one for one in types if one in _FIRST_TYPES]
            among = first if first and self._rng.random() < 0.7 else types
            drawn = _AnyGraph(self._rng, self._graphs, cells, self._variants).draw(
                among[int(self._rng.integers(len(among)))]
            )
            failures = failures + 1 if drawn is None else 0
            if drawn is not None:
                yield drawn

    def _shuffled(self, cells: Sequence[Cell]) -> list[Cell]:
        return [cells[at] for at in self._rng.permutation(len(cells))]


def _lateness(pair: tuple[_Variant, _Variant]) -> int:
    """Return how late a pair is tried, those first that read a tensor twice."""
    apart = pair[0].node.type != pair[1].node.type
    rank = sum(_rank(one.node.cell) for one in pair) + _OTHER_TYPE * apart
    return 2 * rank + (not pair[1].twice)


_OTHER_TYPE: Final = 4
"""How much later an operator is tried in a type that few models have."""


def _rank(cell: Cell) -> int:
    """Return how late pairs of a cell are tried."""
    operator, type_ = cell
    return _OTHER_TYPE * (type_ not in _FIRST_TYPES) + (operator not in _COMMON)


_MOST_FAILURES: Final = 200
"""Draws in a row that make no graph, after which there is none left to draw."""


@dataclass(slots=True)
class _AnyGraph:
    """One graph of up to ten operators, drawn.

    Attributes:
        rng: every draw.
        graphs: builds operators.
        cells: operators and types that the device takes.
        variants: the ways in which each is tried.

    """

    rng: np.random.Generator
    graphs: NodeGraphs
    cells: Sequence[Cell]
    variants: Mapping[Cell, Sequence[_Variant]]

    def draw(self, type_: str) -> DrawnGraph | None:
        """Return a graph that begins with values of a type, or None."""
        builder = GraphBuilder(self.rng, self.graphs)
        value = base_value(type_, _SHAPES[int(self.rng.integers(len(_SHAPES)))])
        for _ in range(int(self.rng.integers(1, 3))):
            rows = [self._drawn_values(value) for _ in _STYLES]
            builder.given(value, np.stack(rows))
        pool = list(builder.operands)
        used: list[_Variant] = []
        read: set[int] = set()
        views = 0.6 if self.rng.random() < 0.6 else 0.1
        wanted = int(self.rng.integers(2, _MOST_NODES + 1))
        for _ in range(3 * wanted):
            if len(used) == wanted:
                break
            variant, reads = self._next(builder, pool, views)
            if variant is None:
                continue
            written = builder.add(variant.node, reads, shared=self.rng.random() < 0.5)
            if written is not None:
                used.append(variant)
                pool += [at for at in written if builder.values[at].size <= _MOST_SIZE]
                read.update(reads.values())
        if len(used) < 2:
            return None
        return tuple(used), self._posed(builder, read)

    def _next(
        self, builder: GraphBuilder, pool: Sequence[int], views: float
    ) -> tuple[_Variant | None, dict[int, int]]:
        """Return an operator to add, and which tensors of the graph it reads."""
        # Mostly the last ones, so that chains come about, and now and then an earlier one.
        back = min(int(self.rng.geometric(0.4)), len(pool))
        tensor = pool[-back]
        dtype = builder.values[tensor].dtype
        fitting = [one for one in self.cells if DTYPES[one[1]] == dtype]
        if self.rng.random() < views:
            fitting = [one for one in fitting if one[0] in _VIEWS] or fitting
        if not fitting:
            return None, {}
        cell = fitting[int(self.rng.integers(len(fitting)))]
        several = self.variants[cell]
        variant = several[int(self.rng.integers(len(several)))]
        if self.rng.random() < 0.5:
            variant = self._drawn_variant(variant)
        reads = {0: tensor}
        if variant.twice:
            like = [at for at in pool if fits(builder.values[at], builder.values[tensor])]
            reads[1] = like[int(self.rng.integers(len(like)))]
        return variant, reads

    def _drawn_variant(self, variant: _Variant) -> _Variant:
        """Return a variant with other settings, such as an activation."""
        drawn = drawn_configuration(variant.node.cell, self.rng)
        if drawn is None or variant.twice:
            return variant
        return _Variant(replace(variant.node, configuration=drawn, constants=drawn_seed(self.rng)))

    def _posed(self, builder: GraphBuilder, read: set[int]) -> PosedModel:
        """Return the graph, which answers some of its results, one of them twice now and then."""
        results = [at for node in builder.nodes for at in node.outputs]
        outputs = [
            at for at in results if self.rng.random() < (0.35 if at in read else 0.85)
        ] or results[-1:]
        if self.rng.random() < 1 / 16:
            outputs.append(outputs[int(self.rng.integers(len(outputs)))])
        if self.rng.random() < 1 / 32:
            # Apart from what else may be wrong, which it would hide.
            outputs = [next(iter(builder.operands)), results[-1]]
        return builder.posed(outputs)

    def _drawn_values(self, value: GraphValue) -> Values:
        return operand_values(value, _STYLES[0], self.rng)


def replace_lists(builder: GraphBuilder) -> GraphBuilder:
    """Return a copy of a graph that grows, which grows by itself."""
    return replace(
        builder,
        values=list(builder.values),
        nodes=list(builder.nodes),
        operands=dict(builder.operands),
    )


def base_value(type_: str, shape: tuple[int, ...]) -> GraphValue:
    """Return a tensor of a type that is given to graphs."""
    return GraphValue(DTYPES[type_], shape, _QUANTIZATIONS.get(type_))
