"""Read the objects of a detector's outputs, and tell whether those of two models match."""

from typing import Any

import numpy as np


def read(tensors: Any, decoder: Any) -> Any:
    """Return the objects of a detector, the best first: left, top, right, bottom, score, class."""
    how, rule = decoder["decoding"], decoder["rule"]
    row = decoder["outputs"]
    given = {
        key: tensors[row[at]["name"]][0]
        for key, at in how.items()
        if key in ("regressors", "places", "classes", "scores", "count")
    }
    if how["decoding"] == "anchors":
        anchors = np.array(how["anchors"])
        each = given["scores"].reshape(len(anchors), -1)[:, how["class_offset"] :]
        labels, scores = each.argmax(1), each.max(1)
        encoded = given["regressors"].reshape(len(anchors), -1)[:, :4] / how["size"]
        encoded = encoded * np.tile(anchors[:, 2:], 2) if anchors.shape[1] == 4 else encoded
        centre, half = anchors[:, :2] + encoded[:, :2], encoded[:, 2:] / 2
        boxes = np.concatenate([centre - half, centre + half], 1)
    elif how["decoding"] == "postprocess":
        boxes, scores = given["places"].reshape(-1, 4)[:, [1, 0, 3, 2]], given["scores"]
        labels = np.rint(given["classes"]) - how["class_offset"]
        scores = np.where(np.arange(len(scores)) < given["count"], scores, -1)
    else:
        rows = given["scores"].reshape(-1, 6)
        boxes, scores, labels = rows[:, :4], rows[:, 4], np.rint(rows[:, 5]) - how["class_offset"]
    if decoder["logits"]:
        scores = 1 / (1 + np.exp(-np.clip(scores, -80, 80)))
    step = 1e-5 * row[how["scores"]]["scale"]
    kept: list[Any] = []
    for at in np.argsort(-scores, kind="stable"):
        one = [*boxes[at].tolist(), float(scores[at]), int(labels[at])]
        better = [other for other in kept if other[5] == one[5]]
        if one[4] < rule["threshold"] - step or len(kept) == rule["most_objects"]:
            break
        if one[5] >= 0 and all(overlap(one, other) <= rule["suppression"] for other in better):
            kept.append(one)
    return kept


def describe(answers: Any, arm: Any, told: Any) -> Any:
    """Return the objects of a model here, and those when the deviation was found."""
    (found,) = [view["boxes"][arm] for view in told["finding"]["answers"]]
    before = found and [[*box["box"], box["score"], box["label"]] for box in found]
    here, before = (
        objects
        and [[float(f"{value:.6g}") for value in object_[:5]] + object_[5:] for object_ in objects]
        for objects in (answers[0], before)
    )
    return f"{here} here, {before} when it was found"


def compare(one: Any, other: Any, told: Any) -> Any:
    """Return whether the objects of two models deviate, and a line about how far."""
    rule = told["arms"][told["compared"][1]]["decoder"]["rule"]
    return not partners(one[0], other[0], rule["overlap"]), ""


def overlap(one: Any, other: Any) -> Any:
    """Return the intersection over union of two objects."""
    low, high = np.maximum(one[:2], other[:2]), np.minimum(one[2:4], other[2:4])
    shared = np.prod(np.maximum(high - low, 0))
    areas = [max(0, box[2] - box[0]) * max(0, box[3] - box[1]) for box in (one, other)]
    return shared / (sum(areas) - shared) if shared > 0 else 0.0


def partners(first: Any, second: Any, least: Any) -> bool:
    """Whether objects can be matched one to one: of one class, and overlapping enough."""
    taken: dict[int, int] = {}

    def place(at: int, tried: set[int]) -> bool:
        for to, other in enumerate(second):
            near = other[5] == first[at][5] and overlap(first[at], other) >= least
            if near and to not in tried:
                tried.add(to)
                if to not in taken or place(taken[to], tried):
                    taken[to] = at
                    return True
        return False

    return len(first) == len(second) and all(place(at, set()) for at in range(len(first)))
