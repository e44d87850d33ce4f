"""Held-out inputs (`--test`): evaluated on every arm as they are, and never searched from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.input_evaluation import evaluate_inputs
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import Decoder
from edgeflare.core.truths import KeptTargets, require_targets
from edgeflare.errors import UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.run.run_journal import HELD_OUT_KEY, RunJournal


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Inputs that are only evaluated.

    Attributes:
        path: where they were loaded from.
        inputs: as seeds are.

    """

    path: Path
    inputs: Seeds

    @classmethod
    def load(
        cls, path: Path, models: ModelInputs, decoder: Decoder, classes: Sequence[str] = ()
    ) -> HeldOut:
        """Load inputs as seeds are given.

        Args:
            path: path of an `.npz` file, or a folder.
            models: what the pair's models take.
            decoder: decoder of the pair, which reads targets.
            classes: the pair's names of the decisions, by which sub-folders are labels.

        Raises:
            UserError: there are none, or they do not fit; or the models take something beside them
                that belongs to each seed.

        """
        try:
            inputs = models.load(path, classes=classes)
            if inputs.fixed:
                raise UserError(
                    f"{', '.join(inputs.fixed)} is left by the search as each seed has it, which"
                    " inputs that are no seeds cannot have: leave out --test"
                )
            require_targets(decoder, inputs, path)
            return cls(path, inputs)
        except UserError as error:
            raise UserError(f"--test: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """Return what the journal is told of them, as plain JSON values."""
        labels, targets = self.inputs.labels, KeptTargets.of(self.inputs.targets)
        values = np.ascontiguousarray(self.inputs.inputs)
        return {
            "path": os.path.abspath(self.path),
            "images": len(self.inputs),
            "sha256": hashlib.sha256(str(values.shape).encode() + values.tobytes()).hexdigest(),
            "labels": None if labels is None else labels.tolist(),
            "targets": None if targets is None else targets.to_json(),
        }


def note_held_out(journal: RunJournal, held_out: HeldOut | None, *, resumed: bool) -> None:
    """Note in the journal of a run which inputs it evaluates beside its seeds.

    Raises:
        UserError: the run is resumed, and was begun with others.

    """
    noted = None if held_out is None else held_out.to_json()
    if not resumed:
        journal.note(HELD_OUT_KEY, noted)
        return
    begun = journal.about().get(HELD_OUT_KEY)
    before, now = (
        known and (known["sha256"], known["labels"], known["targets"]) for known in (begun, noted)
    )
    if before != now:
        how = f"with --test {begun['path']}" if begun else "without --test"
        raise UserError(
            f"{journal.path.parent} was begun {how}, and with other inputs than now: repeat the"
            " command that began it, with --resume"
        )


def evaluate_held_out(context: CampaignContext) -> bool:
    """Evaluate the held-out inputs that were not evaluated yet; return False if it was stopped.

    They belong to no seed, so a search of some seeds leaves them to the run that has all.
    """
    if context.held_out is None or context.plan.seed_ids is not None:
        return True
    inputs = context.held_out.inputs
    done = context.journal.answers("test").keys()
    missing = [(i, 0) for i in range(len(inputs)) if i not in done]
    evaluated = len(inputs) - len(missing)
    for batch in evaluate_inputs(context, "test", [missing], lambda i: inputs[i], largest_batch=64):
        evaluated += len(batch)
        context.observer.tested(evaluated, len(inputs))
    return evaluated == len(inputs)
