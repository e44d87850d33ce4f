"""What repairs that are judged by labels share: parts of inputs, candidates, and a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare import __version__
from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.repair.judging.judgement_inputs import FRESH, Labels, SeedSplit, true_labels
from edgeflare.repair.repair_candidate import ReportProgress, StepProgress
from edgeflare.repair.repair_document import PairToRepair, RepairDocument, TriedCandidate
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_run import fresh_seeds, repaired_for
from edgeflare.statistics.binomial import surely_more

CHOOSE: Final = "choose"
JUDGE: Final = "judge"
"""Parts of the inputs, as the figures of a model name them; `FRESH` is that of `--test`."""

BEFORE: Final = "before"
"""What the model before is called among candidates."""

PLAIN: Final = "plain"
"""The candidate that is taken where no other one is surely better: nothing but training."""

MOST_LOST: Final = 0.01
"""The share of accuracy that a written candidate loses at most on held-out inputs, where it is not
accuracy that is to rise."""

MOST_LOST_CHOSEN: Final = MOST_LOST / 2
"""The same of a chosen one on the seeds that choose: the one that is best there loses more
elsewhere."""

LabelledInputs = tuple[NDArray[np.generic], Labels]
"""Inputs of the pair's domain, (n, *shape), and their true labels, (n,)."""


def labelled_parts(
    opened: OpenedPair,
    request: RepairRequest,
    labels: Labels,
    places: Mapping[str, NDArray[np.int64]],
) -> dict[str, LabelledInputs]:
    """Return the inputs by which candidates are compared, by part, those of `--test` last.

    Args:
        opened: the pair.
        request: the settings.
        labels: true labels of its seeds.
        places: positions of the seeds of each part.

    Raises:
        UserError: inputs of `--test` cannot be loaded, or have no labels.

    """
    inputs = np.asarray(opened.seeds.inputs)
    parts = {part: (inputs[at], labels[at]) for part, at in places.items()}
    if (fresh := fresh_seeds(opened, request)) is not None:
        parts[FRESH] = np.asarray(fresh.inputs), true_labels(opened, fresh)
    return parts


def any_seed_ids(opened: OpenedPair, count: int) -> list[int]:
    """Return a seed for each input: a model with one input has nothing else of a seed."""
    return [opened.seeds.seed_ids[0]] * count


def made_candidates(
    makers: Mapping[str, Callable[[StepProgress], bytes]], progress: ReportProgress
) -> tuple[dict[str, bytes], list[TriedCandidate]]:
    """Make candidates one after the other.

    Args:
        makers: what makes each file, by name.
        progress: is called as the steps go on.

    Returns:
        The files by name, and what came of each.

    """
    contents, tried = {}, []
    for number, (name, make) in enumerate(makers.items()):
        progress("candidates", number, len(makers))
        begun = monotonic()
        contents[name] = make(partial(progress, name))
        seconds = round(monotonic() - begun, 3)
        tried.append(TriedCandidate(name=name, seconds=seconds, bytes=len(contents[name])))
    progress("candidates", len(makers), len(makers))
    return contents, tried


def chosen_candidate(right: Mapping[str, NDArray[np.bool_]]) -> str | None:
    """Return the candidate to judge; None where there is none.

    It is "plain", unless another one is right on surely more of the inputs that choose.

    Args:
        right: where each candidate is right, by name.

    """
    if PLAIN not in right:
        return max(right, key=lambda name: int(right[name].sum()), default=None)
    plain = right[PLAIN]
    surely = [
        name
        for name, found in right.items()
        if surely_more(int((found & ~plain).sum()), int((plain & ~found).sum()))
    ]
    return max(surely, key=lambda name: int(right[name].sum()), default=PLAIN)


def labelled_document(
    opened: OpenedPair,
    request: RepairRequest,
    split: SeedSplit,
    tried: Sequence[TriedCandidate],
    written: str | None,
    why: str,
) -> RepairDocument:
    """Return what `repair.json` says of a repair, but for its figures.

    Args:
        opened: the pair.
        request: the settings.
        split: the parts of the seeds.
        tried: what came of each candidate.
        written: the one that is written; None where none is.
        why: why that is so.

    """
    return RepairDocument(
        edgeflare=__version__,
        pair=PairToRepair.of(opened.pair),
        run=None,
        devices=repaired_for(opened),
        classes=tuple(opened.pair.classes),
        request=request,
        seeds=split.sizes,
        residual=None,
        candidates=tuple(tried),
        front=(),
        chosen=written,
        written=written is not None,
        why=why,
    )
