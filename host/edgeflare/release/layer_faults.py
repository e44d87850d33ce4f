"""What the layers of a pair show, on some of the inputs that its arms were asked about."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.query import Arm
from edgeflare.diagnose.arm_probe import ProbedArm, State
from edgeflare.diagnose.compression_error import CompressionError
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.layer_graphs import (
    LayeredModel,
    layered_compressed,
    layered_original,
    reason_not_seen,
)
from edgeflare.diagnose.layers.layer_comparison import (
    ComparedInput,
    LayerComparison,
    OpenedLayers,
    compare_layers,
    device_side,
    probe_on_host,
)
from edgeflare.diagnose.layers.layer_figures import listed
from edgeflare.diagnose.layers.layers_document import LayersDocument, cuts_off
from edgeflare.diagnose.layers.layers_page import (
    constants_in_words,
    said_of_compression,
    wrong_in_words,
)
from edgeflare.diagnose.layers.original_comparison import OriginalSide
from edgeflare.diagnose.output_stage import ModelReader, OutputStage
from edgeflare.errors import UserError
from edgeflare.models.model_probe import ProbeFailed, Values
from edgeflare.models.original import open_original
from edgeflare.pages.facts import in_words, significant
from edgeflare.release.figures.file import ExplainedChanges, FileFault, SeenLayers, SensitiveLayer
from edgeflare.run.run_document import RunDevice

INPUTS: Final = 100
"""Inputs whose layers are compared."""

SENSITIVITY_INPUTS: Final = 50
"""Inputs on which the sensitivity is measured, where there are so many."""

_EXPLAINED: Final = 6
"""Changed inputs on which coarse layers are searched."""

_SEEDS_OF_RANGES: Final = 16
"""Inputs that show which values occur in a layer."""

_TIMES: Final = 25
"""Times as long as all arms take to answer an input its layers take: 14 to 34 on four pairs."""

_WORST: Final = 3
"""Layers that are named."""

_MOST_OF: Final = 0.5
"""Share of the changed inputs on which the same layer has to be coarse."""


def layer_figures(
    opened: OpenedPair,
    places: Sequence[int],
    changed: Sequence[int],
    stopped: Callable[[], bool],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    fingerprint: str = "",
) -> tuple[SeenLayers, LayersDocument]:
    """Look into the layers.

    Args:
        opened: the pair, on one device.
        places: the positions of inputs among its seeds, those first that are looked into first.
        changed: the ids of inputs that are decided otherwise, the worst first.
        stopped: whether to come to an end.
        progress: is called with the number of inputs that are done, and that of all.
        fingerprint: that of the pair, where it is known.

    Returns:
        What they show, and the layer table.

    Raises:
        UserError: none of them can be seen; says why.

    """
    with ExitStack() as stack:
        models = _LayeredPair.open(opened, stack)
        layers = models.opened_layers(places[:INPUTS], stack)
        compare_layers(layers.comparison, layers.inputs, progress, stopped)
        if not layers.comparison.inputs:
            said = "; ".join(layers.comparison.notes.lines())
            raise UserError(f"no layer could be seen{said and f': {said}'}")
        table = layers.document(opened.pair, fingerprint)
        causes = [] if stopped() else list(models.explained(places, changed, stack, stopped))
    wrong = () if table.device is None else tuple(wrong_in_words(table))
    counts = Counter(map(_to_blame, causes)).most_common()
    return (
        SeenLayers(
            inputs=table.inputs,
            layers=len(table.layers),
            matched=sum(layer.matched_by is not None for layer in table.layers),
            faults=(*_faults(table), *_coarse_layers(causes)),
            other_constants=len(table.other_constants()) - len(set(table.faulty())),
            sensitive="; ".join(said_of_compression(table)),
            worst=tuple(_worst(table)),
            explained=tuple(
                ExplainedChanges(description=words, inputs=inputs) for words, inputs in counts
            ),
            on_device={} if table.device is None else {table.device.name: wrong},
            together=together_on_device(table),
            notes=table.notes,
        ),
        table,
    )


def layer_seconds(inputs: int, each: float) -> float:
    """Return about how many seconds it takes.

    Args:
        inputs: how many there are.
        each: seconds that all arms take for one.

    """
    return min(INPUTS, inputs) * _TIMES * each


def together_on_device(table: LayersDocument) -> dict[str, tuple[str, ...]]:
    """Return the operators that are wrong together on the device of a layer table, by its name."""
    if table.device is None or not table.together:
        return {}
    return {table.device.name: tuple(map(str, table.together))}


def _faults(table: LayersDocument) -> Iterator[FileFault]:
    """Yield what is wrong with layers by themselves, what is not finite first."""
    for layer in table.not_finite()[:1]:
        yield FileFault(
            kind="not-finite",
            place=str(layer.layer),
            sentence=f"{layer.layer} is the first layer that is not finite where the original is",
            next_step=f"keep {layer.layer} in float32, or change what it computes",
        )
    for layer in table.faulty():
        wrapped = layer.constants is not None and layer.constants.overflows
        yield FileFault(
            kind="overflow" if wrapped else "constants",
            place=str(layer.layer),
            sentence=f"a constant of {layer.layer} is off by {constants_in_words(layer)}",
            next_step="enlarge the scale of these channels' weights, so that the bias fits"
            if wrapped
            else "convert the model anew from this original",
        )
    known = table.input_range
    if known is not None and cuts_off(known):
        yield FileFault(
            kind="input-range",
            place="input",
            sentence=f"the compressed model's input holds {significant(known.low)} to"
            f" {significant(known.high)}, and {known.below + known.above:.0%} of the values that"
            " the original is given lie beyond",
            next_step="calibrate again with inputs that are preprocessed as the pair says",
        )


def _worst(table: LayersDocument) -> Iterator[SensitiveLayer]:
    """Yield the layers that decisions hang on most, the first of them first."""
    known = [
        (layer, its)
        for layer in table.by_sensitivity()
        if (its := layer.sensitivity) is not None and its.margin
    ]
    for layer, its in known[:_WORST]:
        yield SensitiveLayer(
            layer=str(layer.layer), inputs=its.inputs, changed=its.changed, margin=its.margin
        )


def _coarse_layers(causes: Sequence[CompressionError]) -> list[FileFault]:
    """Return the layers that are quantized coarsely on most of some inputs."""
    found: dict[str, list[FileFault]] = defaultdict(list)
    for cause in causes:
        for layer in cause.coarse:
            found[str(layer)].append(
                FileFault(
                    kind="cut-off" if layer.kind == "saturated" else "coarse",
                    place=str(layer),
                    sentence=f"{layer} is quantized coarsely ({in_words(layer.kind)}): {layer.why}",
                    next_step=layer.next_step,
                )
            )
    often = sorted(found.values(), key=len, reverse=True)
    return [some[0] for some in often if len(some) > _MOST_OF * len(causes)]


def _to_blame(cause: CompressionError) -> str:
    """Return what of compression is to blame for an input, without its figures."""
    if cause.grade == "faulty":
        return f"{cause.most} has an error that its quantization does not explain"
    if cause.grade == "coarse":
        return f"{listed(map(str, cause.coarse))}, quantized coarsely"
    if cause.grade == "spread":
        return "ordinary rounding in many layers"
    return "not known"


@dataclass(frozen=True, slots=True)
class _LayeredPair:
    """The models of a pair whose layers are looked into.

    Attributes:
        pair: the opened pair.
        compressed: the compressed model.
        original: the original; None where its layers cannot be seen, as `note` says.
        note: reason why the original's layers cannot be seen.

    """

    pair: OpenedPair
    compressed: LayeredModel
    original: OriginalSide | None
    note: str

    @classmethod
    def open(cls, opened: OpenedPair, stack: ExitStack) -> _LayeredPair:
        pair, arms = opened.pair, opened.panel.arms
        inputs = opened.panel.host(Arm.TWIN).evaluator.signature.inputs
        if why := reason_not_seen(pair.interface.invocation, len(inputs)):
            raise UserError(why)
        original, note = None, "there is no original"
        if Arm.ORIGINAL in arms:
            try:
                layered = layered_original(pair)
                model = stack.enter_context(closing(open_original(pair, opened.inputs)))
                decoder = opened.panel.reading.decoders[Arm.ORIGINAL]
                stage = OutputStage(pair.interface, decoder, model.makers())
                original, note = OriginalSide(layered, ModelReader(stage, model.signature)), ""
            except UserError as refused:
                note = str(refused)
        return cls(opened, layered_compressed(pair), original, note)

    def opened_layers(self, places: Sequence[int], stack: ExitStack) -> OpenedLayers:
        device = self.pair.devices[0]
        comparison = LayerComparison(
            self.compressed,
            probe_on_host,
            self.original,
            device_side(device),
        )
        stack.enter_context(closing(comparison))
        if self.note:
            comparison.notes.add("no original", self.note)
        return OpenedLayers(
            comparison,
            tuple(
                ComparedInput(
                    self._given(Arm.TWIN, place),
                    None if self.original is None else self._given(Arm.ORIGINAL, place),
                    at < SENSITIVITY_INPUTS,
                )
                for at, place in enumerate(places)
            ),
            TWIN_KERNELS,
            RunDevice.of(device),
        )

    def explained(
        self,
        places: Sequence[int],
        changed: Sequence[int],
        stack: ExitStack,
        stopped: Callable[[], bool],
    ) -> Iterator[CompressionError]:
        """Yield what compression did to the layers on some changed inputs."""
        seeds = self.pair.seeds
        some = [seeds.place(input_) for input_ in changed[:_EXPLAINED]]
        if self.original is None or not some:
            return
        arm = ProbedArm(self.compressed.graph, self.compressed.content, probe_on_host)
        stack.enter_context(closing(arm))
        on_seeds = places[:_SEEDS_OF_RANGES]
        its = self.original.model
        localizer = CompressionLocalizer(
            self.compressed.graph,
            its.graph,
            its.content,
            probe_on_host,
            self.original.reader,
            lambda: [
                (state, self._given(Arm.ORIGINAL, place))
                for place in takewhile(lambda _: not stopped(), on_seeds)
                if (state := self._observed(arm, place))
            ],
        )
        stack.enter_context(closing(localizer))
        for place in takewhile(lambda _: not stopped(), some):
            if state := self._observed(arm, place):
                yield localizer.find(state, self._given(Arm.ORIGINAL, place))

    def _observed(self, arm: ProbedArm, place: int) -> State:
        """Return the twin's tensors on an input; none where they cannot be seen."""
        given = [self._given(Arm.TWIN, place)]
        try:
            seen = arm.observe(given, arm.outputs(given))
        except (ProbeFailed, UserError):
            return {}
        return {} if seen.method is None else seen.state

    def _given(self, arm: Arm, place: int) -> Values:
        """Return an input as an arm of the host takes it."""
        opened = self.pair
        row = opened.panel.rows(
            arm, opened.seeds.inputs[place : place + 1], [opened.seeds.seed_ids[place]]
        )
        return row.reshape(opened.panel.host(arm).evaluator.signature.input.shape)
