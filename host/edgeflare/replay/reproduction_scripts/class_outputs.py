"""Read the classes of a model's outputs, and tell whether those of two models differ."""

from typing import Any

import numpy as np


def read(tensors: Any, decoder: Any) -> Any:
    """Return the class of each frame that counts; None where its scores are not finite."""
    values = tensors[decoder["outputs"][decoder["at"]]["name"]]
    rows = values.mean(0)[None] if decoder["frames"]["rule"] == "mean" else values
    return [int(row.argmax()) if np.isfinite(row).all() else None for row in rows]


def describe(answers: Any, arm: Any, told: Any) -> Any:
    """Return the decisions of a model here, and those when the deviation was found."""
    here, found = [frame for frames in answers for frame in frames], told["arms"][arm]["decisions"]
    return f"{here} here" + (f", {found} when it was found" if found else "")


def compare(one: Any, other: Any, _told: Any) -> Any:
    """Return whether the answers of two models deviate, and a line about how far."""
    return one != other, ""
