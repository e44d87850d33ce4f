"""Read the values of a model's output, and tell how far those of two models are apart."""

from typing import Any

import numpy as np


def read(tensors: Any, decoder: Any) -> Any:
    """Return the values of each frame that counts, (frames, values)."""
    values = tensors[decoder["outputs"][decoder["at"]]["name"]]
    points = decoder["measure"]["points"]
    if points:  # of which some coordinates count
        each = values.reshape(len(values), -1, points["size"])[:, :, : points["dimensions"]]
        values = each.reshape(len(values), -1)
    return values


def describe(answers: Any, _arm: Any, _told: Any) -> Any:
    """Return how many values there are."""
    return f"{answers[0].size} values here"


def compare(one: Any, other: Any, told: Any) -> Any:
    """Return whether the values of two models deviate, and a line about how far."""
    measure = told["arms"][told["compared"][1]]["decoder"]["measure"]
    apart, tolerance = distance(one[0], other[0], measure), measure["tolerance"]
    before = (told["finding"]["strength"] + 1) * tolerance
    line = f"{apart:.6g} apart here, {before:.6g} when it was found; tolerance {tolerance:g}"
    return apart > tolerance, line


def distance(a: Any, b: Any, measure: Any) -> Any:
    """Return how far values are apart; see docs/tasks.md of EdgeFlare."""
    norms, apart = (
        [np.linalg.norm(values, axis=1) for values in (a, b)],
        np.linalg.norm(a - b, axis=1),
    )
    if measure["distance"] in ("mean-point", "farthest-point", "normalized"):
        points = measure["points"]
        a, b = (values.reshape(len(values), -1, points["dimensions"]) for values in (a, b))
        each = np.linalg.norm(a - b, axis=2)
        each = each.max(1) if measure["distance"] == "farthest-point" else each.mean(1)
        if points["unit"]:
            begin, end = points["unit"]
            unit = (
                sum(np.linalg.norm(values[:, begin] - values[:, end], axis=1) for values in (a, b))
                / 2
            )
            each = each / np.maximum(unit, np.finfo(np.float32).tiny)
    elif measure["distance"] == "cosine":
        product = norms[0] * norms[1]
        each = 1 - (a * b).sum(1) / np.where(product > 0, product, 1)
        each = np.where((a == b).all(1), 0, each)
    elif measure["distance"] == "relative":
        larger = np.maximum(*norms)
        each = apart / np.where(larger > 0, larger, 1)
    elif measure["distance"] == "mean-absolute":
        each = np.abs(a - b).mean(1)
    else:
        each = apart if measure["distance"] == "l2" else np.abs(a - b).max(1)
    return each.mean() if measure["mean"] else each.max()
