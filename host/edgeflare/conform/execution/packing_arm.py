"""An arm that runs hundreds of models from one file, and alone those that do not take it well.

Models of any numbers of rows are run beside each other, by arms that take as many of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from edgeflare.conform.execution.culprit_search import CulpritSearch, row_seconds
from edgeflare.conform.execution.failure_history import FailureHistory
from edgeflare.conform.execution.kernel_arm import (
    KernelArm,
    ModelAnswer,
    PosedModel,
    RunFailure,
    Turns,
)
from edgeflare.conform.execution.model_opener import ModelOpener
from edgeflare.conform.execution.model_pack import (
    ONE_INVOCATION,
    ModelPack,
    PackInvocation,
    PackLimits,
    next_group,
)
from edgeflare.conform.execution.pack_runner import PackRunner

_WITNESS_GROUPS = 3
"""Packs of models that lived, beside which a model is tried whose answer depends on others."""


class PackingArm:
    """The kernels of one place; see `KernelArm`.

    Attributes:
        name: "device", or a kernel set of the host.

    """

    def __init__(
        self,
        opener: ModelOpener,
        limits: PackLimits | None = None,
        invocation: PackInvocation = ONE_INVOCATION,
    ) -> None:
        """Make an arm; nothing is loaded yet.

        Args:
            opener: loads files there.
            limits: limits of a file; what one message carries limits it besides.
            invocation: how models are invoked.

        """
        self.name = opener.name
        self._patience_seconds = opener.input_seconds
        self._limits = limits or PackLimits()
        row_bytes = min(self._limits.row_bytes, opener.payload_limit_bytes)
        self._limits = replace(self._limits, row_bytes=row_bytes)
        self._opener, self._runner = opener, PackRunner(opener)
        self._history = FailureHistory()
        self._invocation = invocation
        self._on_other_threads: PackingArm | None = None
        self._invoking: dict[PackInvocation, PackingArm] = {}

    @property
    def processes(self) -> int:
        """Processes that were asked to load models so far."""
        return self._runner.processes

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        """Run models; see `KernelArm`."""
        return self._answers(models, self._limits)

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        """Run models each in a fresh process; see `KernelArm`."""
        alone = self._answers(models, replace(self._limits, models=1))
        compared = [_compared(answer, other) for answer, other in zip(packed, alone, strict=True)]
        return [
            replace(now, neighbours=self._depends(model, now))
            if now.neighbours and not before.neighbours
            else now
            for model, before, now in zip(models, packed, compared, strict=True)
        ]

    def on_other_threads(self) -> PackingArm | None:
        """Return the same kernels on another number of threads; see `KernelArm`."""
        opener = self._opener.on_other_threads()
        if self._on_other_threads is None and opener is not None:
            self._on_other_threads = PackingArm(opener, self._limits)
            self._on_other_threads.name = self.name
        return self._on_other_threads

    def without_reset(self, rows: int) -> PackingArm:
        """Return the same kernels, which keep states between rows; see `KernelArm`."""
        return self._as_invoked(PackInvocation(frames=rows), self._opener.for_clips(rows))

    def taking_turns(self, turns: Turns) -> PackingArm | None:
        """Return the same kernels, which run models in turn with others; see `KernelArm`."""
        if not self._opener.takes_steps:
            return None
        return self._as_invoked(PackInvocation(turns=turns), self._opener)

    def _as_invoked(self, invocation: PackInvocation, opener: ModelOpener) -> PackingArm:
        if invocation not in self._invoking:
            self._invoking[invocation] = PackingArm(opener, self._limits, invocation)
        return self._invoking[invocation]

    def close(self) -> None:
        """Release what it has; closing twice is no error."""
        self._runner.close()
        for arm in (self._on_other_threads, *self._invoking.values()):
            if arm is not None:
                arm.close()

    def _depends(self, model: PosedModel, alone: ModelAnswer) -> bool:
        """Return whether a model answers otherwise than alone beside any others.

        One that answers as alone beside some of them had its values overwritten by another. A
        kernel that reads outside of its tensors finds something else there beside all of them; so
        do others of its kind then, which are not tried.
        """
        if alone.failure is not None or self._history.depends(model.graph):
            return True
        witnesses = self._history.witnesses(model.rows)
        groups = [witnesses[at::_WITNESS_GROUPS] for at in range(_WITNESS_GROUPS)]
        depends = all(self._differs_beside(model, alone, group) for group in groups if group)
        if depends and witnesses:
            self._history.note_dependence(model.graph)
        return depends

    def _differs_beside(
        self, model: PosedModel, alone: ModelAnswer, others: Sequence[PosedModel]
    ) -> bool:
        models = [model, *others]
        first, *rest = next_group(models, range(len(models)), lambda _: 0.0, self._limits)
        pack = ModelPack([models[at] for at in (*rest, first)], self._invocation)
        outcome = self._runner.run(pack, self._patience_seconds + row_seconds(pack.models))
        return isinstance(outcome, RunFailure) or not _are_equal(outcome[-1], alone)

    def _answers(self, models: Sequence[PosedModel], limits: PackLimits) -> list[ModelAnswer]:
        search = CulpritSearch(
            self._runner, self._history, models, limits, self._patience_seconds, self._invocation
        )
        return search.answers()


def run_on_all(
    arms: Sequence[KernelArm], models: Sequence[PosedModel]
) -> Mapping[str, list[ModelAnswer]]:
    """Run the same models on several arms at once; answers by the arms' names.

    Raises:
        InfrastructureError: what runs them is lost on one of them; the others have ended by then.

    """
    with ThreadPoolExecutor(len(arms), thread_name_prefix="edgeflare-arm") as threads:
        under_way = {arm.name: threads.submit(arm.run, models) for arm in arms}
    return {name: future.result() for name, future in under_way.items()}


def _compared(packed: ModelAnswer, alone: ModelAnswer) -> ModelAnswer:
    """Return the answer alone, with whether it was another one beside other models."""
    if packed.corrupts:  # alone it harms nobody
        return packed
    return replace(alone, neighbours=packed.neighbours or not _are_equal(packed, alone))


def _are_equal(one: ModelAnswer, other: ModelAnswer) -> bool:
    """Return whether both give the same answer, to the bit, or both none."""
    if one.failure is not None or other.failure is not None:
        return (one.failure is None) == (other.failure is None)
    pairs = zip(one.outputs, other.outputs, strict=True)
    return all(values.tobytes() == same.tobytes() for values, same in pairs)


def run_padded(
    arms: Sequence[KernelArm], models: Sequence[PosedModel]
) -> list[Mapping[str, ModelAnswer]]:
    """Run models beside each other on several arms; return each model's answers by arm name."""
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
    other = None if model.other is None else _padded(model.other, rows)
    if not model.operands:
        return replace(model, constant_rows=rows, other=other)
    operands = (
        np.concatenate([operand, np.repeat(operand[-1:], rows - len(operand), axis=0)])
        for operand in model.operands
    )
    return replace(model, operands=tuple(operands), other=other)


def _first_rows(answer: ModelAnswer, rows: int) -> ModelAnswer:
    """Return an answer to the rows that were not added."""
    if not answer.outputs or len(answer.outputs[0]) == rows:
        return answer
    return replace(answer, outputs=tuple(output[:rows] for output in answer.outputs))
