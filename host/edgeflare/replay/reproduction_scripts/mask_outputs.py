"""Read the class of each pixel of a model's output, and tell how far two masks overlap."""

from typing import Any

import numpy as np


def read(tensors: Any, decoder: Any) -> Any:
    """Return the class of each pixel, (rows, columns)."""
    tensor = decoder["outputs"][decoder["at"]]
    shape = tensor["shape"][2 if decoder["frames"]["count"] else 1 :]
    scores = tensors[tensor["name"]][-1]
    if decoder["layout"] == "NCHW":
        scores = scores.reshape(shape).transpose(1, 2, 0)
    else:
        scores = scores.reshape(*shape[:2], -1)
    if decoder["pixels"] == "classes":
        return scores[..., 0].astype(int)
    if scores.shape[2] > 1:
        return scores.argmax(2)
    nearly = 1e-5 * tensor["scale"]
    return (scores[..., 0] > decoder["threshold"] + nearly).astype(int)


def describe(answers: Any, _arm: Any, _told: Any) -> Any:
    """Return how many pixels there are."""
    return f"{answers[0].size} pixels here"


def compare(one: Any, other: Any, told: Any) -> Any:
    """Return whether the masks of two models deviate, and a line about how far."""
    rule = told["arms"][told["compared"][1]]["decoder"]["rule"]
    iou, region = mean_iou(one[0], other[0]), largest_region(one[0] != other[0])
    line = f"mean IoU {iou:.6g}, largest region that differs {region} pixels, as masks here"
    return iou < rule["overlap"] or 0 < rule["region"] <= region, line


def mean_iou(a: Any, b: Any) -> Any:
    """Return the mean over the classes that either mask has."""
    pairs = [(a == class_, b == class_) for class_ in np.union1d(a, b)]
    return np.mean([(x & y).sum() / (x | y).sum() for x, y in pairs])


def largest_region(differing: Any) -> Any:
    """Return the pixels of the largest region, of pixels that touch by a side or a corner."""
    rows, columns = differing.shape
    numbers = np.pad(np.where(differing, np.arange(1, differing.size + 1).reshape(rows, -1), 0), 1)
    before = None
    while before is None or (numbers != before).any():
        before = numbers.copy()
        around = [before[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
        numbers[1:-1, 1:-1] = np.where(differing, np.max(around, 0), 0)
    return np.bincount(numbers[numbers > 0], minlength=1).max()
