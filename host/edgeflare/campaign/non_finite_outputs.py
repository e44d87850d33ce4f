"""Which arms put out NaN or infinity on some seeds, and where that begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.query import Arm, EvaluatedQuery
from edgeflare.core.raw_output_rows import OutputDecoders, restored_row
from edgeflare.core.tensor import unpack_rows
from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE
from edgeflare.models.model_file import read_model_file
from edgeflare.models.non_finite_values import NonFinite, NonFiniteOnset, non_finite_kind, traced
from edgeflare.models.tflite_graph import Graph

NonFiniteRows = Mapping[Arm, Mapping[int, NonFinite]]
"""What the outputs of arms hold that is not finite, by arm and position of the query."""

TO_EXPLAIN: Final = "`edgeflare explain` names the operator in which it begins"


def non_finite_rows(
    reading: OutputDecoders, evaluated: Sequence[EvaluatedQuery]
) -> dict[Arm, dict[int, NonFinite]]:
    """Return the queries to which an arm has no answer since its outputs are not finite.

    Args:
        reading: how the raw outputs are read.
        evaluated: the queries, with their raw outputs.

    """
    found: dict[Arm, dict[int, NonFinite]] = {}
    for at, query in enumerate(evaluated):
        for arm, answer in query.outcome.answers.items():
            if answer.failure == "invalid-output" and arm in query.raw:
                decoder = reading.decoders[arm]
                row = np.frombuffer(restored_row(decoder, query.raw[arm]), np.uint8)
                if kind := non_finite_kind(unpack_rows(decoder.outputs, row[None])):
                    found.setdefault(arm, {})[at] = kind
    return found


def non_finite_lines(
    found: NonFiniteRows, arms: Sequence[Arm], seeds: str, where: str = TO_EXPLAIN
) -> list[str]:
    """Return a line on the arms that put out NaN or infinity, and the others; none without such.

    Args:
        found: what `non_finite_rows` returned.
        arms: all arms that were asked.
        seeds: how many were, in words, such as "the first 20 seeds".
        where: what is said of where it begins, such as which command names the operator.

    """
    if not found:
        return []
    said = [
        f"the {arm} puts out {' or '.join(sorted(set(rows.values()), reverse=True))} on"
        f" {len(rows)} of {seeds}"
        for arm, rows in found.items()
    ]
    finite = [f"the {arm}" for arm in arms if arm not in found]
    others = f"; {' and '.join(finite)} nowhere" if finite else ""
    return [f"{' and '.join(said)}{others}; {where}"]


def begins(opened: OpenedPair, found: NonFiniteRows) -> str:
    """Return in which operator of the pair's files it begins, each run once more on the host."""
    said = []
    for arm, path in ((Arm.ORIGINAL, opened.pair.original), (Arm.TWIN, opened.pair.executed)):
        if arm in found and (onset := _onset(opened, arm, Path(str(path)), min(found[arm]))):
            file = "original" if arm is Arm.ORIGINAL else "compressed file"
            said.append(f"in the {file} {onset.place}")
    return "; ".join(said) or TO_EXPLAIN


def _onset(opened: OpenedPair, arm: Arm, path: Path, at: int) -> NonFiniteOnset | None:
    """Return where it begins in a file on one seed; None where its layers cannot be seen."""
    if path.suffix.lower() != ".tflite" or opened.pair.interface.invocation != ONCE:
        return None
    row = opened.panel.rows(arm, opened.seeds.inputs[at : at + 1], [opened.seeds.seed_ids[at]])
    inputs = unpack_rows(opened.panel.host(arm).evaluator.signature.inputs, row)
    content = read_model_file(path)
    try:
        graph = Graph(content, str(path))
    except UserError:
        return None
    return traced(graph, content, opened.ensemble[0], inputs)
