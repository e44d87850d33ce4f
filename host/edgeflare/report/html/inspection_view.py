"""What `edgeflare inspect` found out about hidden units, as the page of a run shows it.

It is read from `inspect.json`, if that lies beside the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeflare.diagnose.inspect.behaviour_block import ERROR_GRADIENT
from edgeflare.diagnose.inspect.hypotheses import DEVIATES
from edgeflare.diagnose.inspect.inspect_document import (
    INSPECTION,
    BestScore,
    InspectDocument,
    InspectedLayer,
    InspectionVerdict,
    load_inspection,
)
from edgeflare.errors import UserError
from edgeflare.pages.facts import number
from edgeflare.run.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class StripCell:
    """One layer in a strip.

    Attributes:
        percent: how dark it is, from 0 to 100.
        words: what is known of the layer, in a line.
        begins: whether the channel of the verdict is one of its.

    """

    percent: float
    words: str
    begins: bool


@dataclass(frozen=True, slots=True)
class LayerStrip:
    """A cell for each layer, in execution order; `name` says what makes a cell dark."""

    name: str
    cells: tuple[StripCell, ...]


@dataclass(frozen=True, slots=True)
class InspectionView:
    """Which hidden units have to do with deviations.

    Attributes:
        sentence: the verdict.
        words: statement of how many inputs the figures are of.
        strips: one for the shares of the margin's error, where these are known, and one for the
            AUC of `deviates`, where that was tried.
        header: columns of the table of layers.
        layers: rows of that table: what the strips show of each layer.
        measures: the columns of the second table.
        foretells: rows of the second table: a behaviour, and what it foretells of `deviates` by
            each measure.

    """

    sentence: str
    words: str
    strips: tuple[LayerStrip, ...]
    header: tuple[str, ...]
    layers: tuple[tuple[str, ...], ...]
    measures: tuple[str, ...]
    foretells: tuple[tuple[str, ...], ...]


def load_inspection_view(directory: RunDirectory) -> InspectionView | None:
    """Return what is known of a run's units; None where nobody inspected them.

    Raises:
        UserError: the file is damaged.

    """
    if not (directory.path / INSPECTION).exists():
        return None
    try:
        return inspection_view(load_inspection(directory.inside(INSPECTION)))
    except UserError as error:
        raise UserError(
            f"{error}; make it again with `edgeflare inspect {directory.path}`"
        ) from None


def inspection_view(document: InspectDocument) -> InspectionView:
    """Return what a page shows of an inspection."""
    layers, verdict = document.layers, document.verdict
    held_out = document.halves[1]
    first = layers[0]
    behaviours = [name for name in document.behaviours if name in first.aucs]
    shared = None not in (first.share, first.top_channel, first.top_share)
    header: tuple[str, ...] = ("layer", "channels")
    if shared:
        header = (*header, "share of the error", "top channel", "its share")
        if behaviours:
            header = (*header, "AUC of their sum")
    rows = tuple(_layer(layer, behaviours, shared=shared) for layer in layers)
    best = [best_score for best_score in document.best if best_score.hypothesis == DEVIATES]
    return InspectionView(
        sentence=verdict.sentence,
        words=f"Figures are of {held_out} inputs near the boundary, on which no unit was chosen.",
        strips=_strips(layers, verdict, behaviours, shared=shared),
        header=(*header, *(f"AUC of the best {name}" for name in behaviours)),
        layers=rows,
        measures=tuple(dict.fromkeys(best_score.measure for best_score in best)),
        foretells=tuple(
            (
                name,
                *(
                    _score(best_score, layers)
                    for best_score in best
                    if best_score.behaviour == name
                ),
            )
            for name in behaviours
        ),
    )


def _strips(
    layers: Sequence[InspectedLayer],
    verdict: InspectionVerdict,
    behaviours: Sequence[str],
    *,
    shared: bool,
) -> tuple[LayerStrip, ...]:
    """Return the strips; an AUC of a half is as light as no share, an AUC of 0 or 1 dark."""
    channel = verdict.unit if verdict.name == "channel" else None
    to_blame = None if channel is None else channel.layer
    strips: list[tuple[str, list[tuple[float, str]]]] = []
    if shared:
        cells = [
            (layer.top_share or 0.0, f"channel {layer.top_channel} has {layer.top_share:.0%}")
            for layer in layers
        ]
        strips.append(("share of the margin's error that the top channel has", cells))
    if behaviours:
        name = ERROR_GRADIENT if ERROR_GRADIENT in behaviours else behaviours[0]
        cells = [(abs(2 * layer.aucs[name] - 1), f"AUC {layer.aucs[name]:.2f}") for layer in layers]
        strips.append((f"AUC for {DEVIATES} of the best channel's {name}", cells))
    return tuple(
        LayerStrip(
            name,
            tuple(
                StripCell(100 * min(max(part, 0.0), 1.0), f"{layer}: {said}", at == to_blame)
                for at, (layer, (part, said)) in enumerate(zip(layers, cells, strict=True))
            ),
        )
        for name, cells in strips
    )


def _layer(layer: InspectedLayer, behaviours: Sequence[str], *, shared: bool) -> tuple[str, ...]:
    cells = [str(layer), str(layer.channels)]
    if shared:
        cells += [f"{layer.share:.0%}", str(layer.top_channel), f"{layer.top_share:.0%}"]
        if behaviours:
            cells.append(number(layer.summed_auc, 2))
    return (*cells, *(f"{layer.aucs[name]:.2f}" for name in behaviours))


def _score(best: BestScore, layers: Sequence[InspectedLayer]) -> str:
    if not best.beyond:
        return "nothing"
    where = "all channels"
    if best.unit is not None:
        where = f"channel {best.unit.channel} of {layers[best.unit.layer]}"
    return f"{best.score:.2f} ({best.low:.2f} to {best.high:.2f}), {where}"
