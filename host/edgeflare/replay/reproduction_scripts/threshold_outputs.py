"""Read the side of a threshold on which a model's score is, and compare those of two models."""

from typing import Any

import numpy as np


def read(tensors: Any, decoder: Any) -> Any:
    """Return 1 for each frame that counts whose score is above the threshold, else 0.

    It is None where the score is not finite.
    """
    row, rule = decoder["outputs"], decoder["frames"]["rule"]
    values = tensors[row[decoder["at"]]["name"]]
    if decoder["source"] is not None:
        values = (values - tensors[row[decoder["source"]]["name"]]) ** 2
    scores = values.mean(1)
    if rule in ("worst", "mean"):
        scores = scores.max(keepdims=True) if rule == "worst" else scores.mean(keepdims=True)
    least = decoder["threshold"] - 1e-5 * row[decoder["at"]]["scale"]
    return [int(score >= least) if np.isfinite(score) else None for score in scores]


def describe(answers: Any, arm: Any, told: Any) -> Any:
    """Return the decisions of a model here, and those when the deviation was found."""
    here = [decision for decisions in answers for decision in decisions]
    found = told["arms"][arm]["decisions"]
    return f"{here} here" + (f", {found} when it was found" if found else "")


def compare(one: Any, other: Any, _told: Any) -> Any:
    """Return whether the answers of two models deviate, and a line about how far."""
    return one != other, ""
