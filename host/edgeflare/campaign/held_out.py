"""Held-out images (`--test`): evaluated on every arm as they are, and never searched from."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.input_evaluation import evaluate_inputs
from edgeflare.errors import UserError
from edgeflare.models.preprocess import Resize
from edgeflare.models.seeds import Seeds, load_seeds
from edgeflare.run.journal import HELD_OUT_KEY, Journal


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Images that are only evaluated.

    Attributes:
        path: where they were loaded from.
        images: as seeds are, in the size that the models take.

    """

    path: Path
    images: Seeds

    @classmethod
    def load(cls, path: Path, shape: tuple[int, int, int], resize: Resize) -> HeldOut:
        """Load images as seeds are given: an `.npz` file, or a folder of image files.

        Raises:
            UserError: there are none, or they are not images of that shape.

        """
        try:
            return cls(path, load_seeds(path, shape, resize))
        except UserError as error:
            raise UserError(f"--test: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """Return what the journal is told of them, as plain JSON values."""
        labels = self.images.labels
        pixels = np.ascontiguousarray(self.images.images)
        return {
            "path": os.path.abspath(self.path),
            "images": len(self.images),
            "sha256": hashlib.sha256(str(pixels.shape).encode() + pixels.tobytes()).hexdigest(),
            "labels": None if labels is None else labels.tolist(),
        }


def note_held_out(journal: Journal, held_out: HeldOut | None, *, resumed: bool) -> None:
    """Note in the journal of a run which images it evaluates beside its seeds.

    Raises:
        UserError: the run is resumed, and was begun with others.

    """
    noted = None if held_out is None else held_out.to_json()
    if not resumed:
        journal.note(HELD_OUT_KEY, noted)
        return
    begun = journal.about().get(HELD_OUT_KEY)
    before, now = (one and (one["sha256"], one["labels"]) for one in (begun, noted))
    if before != now:
        how = f"with --test {begun['path']}" if begun else "without --test"
        raise UserError(
            f"{journal.path.parent} was begun {how}, and with other images than now: repeat the"
            " command that began it, with --resume"
        )


def evaluate_held_out(context: CampaignContext) -> bool:
    """Evaluate the held-out images that were not evaluated yet; return False if it was stopped."""
    if context.held_out is None:
        return True
    images = context.held_out
    done = context.journal.answers("test").keys()
    missing = [(i, 0) for i in range(len(images)) if i not in done]
    evaluated = len(images) - len(missing)
    for batch in evaluate_inputs(context, "test", [missing], lambda i: images[i], largest_batch=64):
        evaluated += len(batch)
        context.observer.tested(evaluated, len(images))
    return evaluated == len(images)
