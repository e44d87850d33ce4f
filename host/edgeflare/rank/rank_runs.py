"""Measuring the models and running their searches, the part of a ranking that takes time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from edgeflare.bench.grid import Grid, Watch, run_grid
from edgeflare.core.interrupt import Interrupt
from edgeflare.models.pair import Pair
from edgeflare.rank.model_measurements import (
    ModelMeasurements,
    check_labelled,
    load_measurements,
    measure,
)
from edgeflare.rank.model_runs import ModelRuns, read_runs
from edgeflare.run.run_directory import RunDirectory

KEPT = "measured.json"
"""Name of the measurements in the folder of a model's runs."""


def measure_all(
    grid: Grid,
    pairs: Sequence[Pair],
    out: Path,
    labelled: Path | None,
    telling: Callable[[Pair], None],
    interrupt: Interrupt,
) -> list[ModelMeasurements] | None:
    """Measure each model, but those that were measured before.

    Args:
        grid: what is asked.
        pairs: the models.
        out: where their runs will lie, a folder for each.
        labelled: a set of labelled images, or None.
        telling: is told each model that is measured.
        interrupt: the user's wish to stop.

    Returns:
        The figures, in the order of the models; None if the user stopped it before.

    Raises:
        UserError: a model or the labelled set is not what it should be.

    """
    measured: list[ModelMeasurements] = []
    unchecked = labelled
    for pair in pairs:
        if interrupt.asked():
            return None
        kept = RunDirectory(out).inside(f"{pair.folder_name}/{KEPT}")
        figures = load_measurements(pair, grid.plan, labelled, kept)
        if figures is None:
            if unchecked is not None:
                check_labelled(pair, unchecked)
                unchecked = None
            telling(pair)
            figures = measure(pair, grid.plan, labelled, kept, interrupt.asked, grid.trust)
        if figures is None:
            return None
        measured.append(figures)
    return measured


def search_all(
    grid: Grid,
    pairs: Sequence[Pair],
    out: Path,
    chains: int,
    watch: Watch,
    interrupt: Interrupt,
) -> list[ModelRuns] | None:
    """Search each model, but where that was done before; one that was stopped goes on.

    Args:
        grid: one strategy.
        pairs: the models.
        out: where their runs lie.
        chains: the most chains that are open at once.
        watch: shows the progress of a search.
        interrupt: the user's wish to stop.

    Returns:
        What was found, in the order of the models; None if the user stopped it before.

    Raises:
        UserError: a pair or a run is not what it should be.

    """
    done: dict[str, list[Path]] = {pair.name: [] for pair in pairs}
    for cell, _ in run_grid(grid, pairs, out, chains=chains, watch=watch, interrupt=interrupt):
        done[cell.pair.name].append(out / cell.run)
    if any(len(runs) < len(grid.rng_seeds) for runs in done.values()):
        return None
    return [read_runs(runs) for runs in done.values()]
