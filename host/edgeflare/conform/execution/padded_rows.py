"""Models of any numbers of rows, run beside each other by arms that take as many of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel
from edgeflare.conform.execution.packing_arm import run_on_all


def run_padded(
    arms: Sequence[KernelArm], models: Sequence[PosedModel]
) -> list[Mapping[str, ModelAnswer]]:
    """Run models beside each other on several arms; for each model the answers by the arms' names.

    Raises:
        InfrastructureError: an arm is lost.

    """
    if not models:
        return []
    rows = [model.rows for model in models]
    by_arm = run_on_all(arms, [_padded(model, max(rows)) for model in models])
    return [
        {name: _first_rows(several[at], count) for name, several in by_arm.items()}
        for at, count in enumerate(rows)
    ]


def _padded(model: PosedModel, rows: int) -> PosedModel:
    """Return a model with as many rows as others have, the last one repeated."""
    if model.rows == rows:
        return model
    if not model.operands:
        return replace(model, constant_rows=rows)
    operands = (
        np.concatenate([one, np.repeat(one[-1:], rows - len(one), axis=0)])
        for one in model.operands
    )
    return replace(model, operands=tuple(operands))


def _first_rows(answer: ModelAnswer, rows: int) -> ModelAnswer:
    """Return an answer to the rows that were not added."""
    if not answer.outputs or len(answer.outputs[0]) == rows:
        return answer
    return replace(answer, outputs=tuple(one[:rows] for one in answer.outputs))
