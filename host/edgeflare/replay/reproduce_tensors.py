"""Show a deviation with nothing but numpy and a TFLite runtime: python reproduce.py."""

import json
import os
import sys
from typing import Any

import numpy as np

try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError:
    from tflite_runtime.interpreter import Interpreter, OpResolverType


def real(raw: Any, tensor: Any) -> Any:
    """Return real numbers for the raw values of a tensor."""
    scale, zero_point = tensor["quantization"]
    values = raw.astype(np.float32)
    return (values - np.float32(zero_point)) * np.float32(scale) if scale else values


def raw(values: Any, tensor: Any) -> Any:
    """Return the raw values of a tensor for real numbers."""
    scale, zero_point = tensor["quantization"]
    if scale:
        bounds = np.iinfo(tensor["dtype"])
        values = np.round(values / np.float32(scale) + np.float32(zero_point))
        values = np.clip(values, bounds.min, bounds.max)
    return values.reshape(tensor["shape"]).astype(tensor["dtype"])


def run(arm: Any) -> Any:
    """Run a model, frame by frame; return its tensors by name, (frames, values) real numbers."""
    ops, threads = OpResolverType[arm["op_resolver"]], arm["threads"]
    model = Interpreter(arm["model"], experimental_op_resolver_type=ops, num_threads=threads)
    for tensor in model.get_input_details():
        if tensor["name"] in arm["shapes"]:
            model.resize_tensor_input(tensor["index"], arm["shapes"][tensor["name"]])
    model.allocate_tensors()
    takes = {tensor["name"]: tensor for tensor in model.get_input_details()}
    gives = {tensor["name"]: tensor for tensor in model.get_output_details()}
    steps, stored = max(1, arm["frames"]), np.load(arm["input"])
    given = {name: stored[f"input_{n}"].reshape(steps, -1) for n, name in enumerate(arm["inputs"])}
    state = {name: np.zeros(takes[name]["shape"], np.float32) for name in arm["state"]}
    seen: dict[str, Any] = {name: [] for name in (*given, *gives)}
    for frame in range(steps):
        for name, rows in given.items():
            values = rows[frame].reshape(takes[name]["shape"])
            model.set_tensor(takes[name]["index"], values)
            seen[name].append(real(values, takes[name]).ravel())
        for name, values in state.items():
            model.set_tensor(takes[name]["index"], raw(values, takes[name]))
        model.invoke()
        made = {name: real(model.get_tensor(one["index"]), one) for name, one in gives.items()}
        state = {name: made[output] for name, output in arm["state"].items()}
        for name, values in made.items():
            seen[name].append(values.ravel())
    return {name: np.stack(rows).astype(float) for name, rows in seen.items()}


def words(values: Any, symbols: Any) -> Any:
    """Return the words that the largest output of each step spells."""
    names, blank = symbols["names"], symbols["blank"]
    path = values.reshape(-1, len(names)).argmax(1).tolist()
    if blank is not None:
        path = [one for at, one in enumerate(path) if at == 0 or one != path[at - 1]]
    written = [names[one] for one in path if one != blank]
    separator = symbols["separator"]
    return [word for word in "".join(written).split(separator) if word] if separator else written


def read(tensors: Any, decoder: Any) -> Any:
    """Return what counts of an output, such as classes, the side of a score, words or objects."""
    if "symbols" in decoder:
        return words(tensors[decoder["tensor"]["name"]], decoder["symbols"])
    if "rule" in decoder:
        return objects(tensors, decoder)
    frames = decoder.get("frames", {"rule": "last", "first": 0})
    first = -1 if frames["rule"] == "last" else frames["first"]
    values = tensors[decoder["tensor"]["name"]][first:]
    if "measure" in decoder:
        return values
    if "mask" in decoder:
        return mask(values[-1], decoder)
    if "threshold" not in decoder:
        return (values.mean(0)[None] if frames["rule"] == "mean" else values).argmax(1).tolist()
    if decoder["source"] is not None:
        values = (values - tensors[decoder["row"][decoder["source"]]["name"]][first:]) ** 2
    scores = values.mean(1)
    if frames["rule"] in ("worst", "mean"):
        scores = (
            scores.max(keepdims=True) if frames["rule"] == "worst" else scores.mean(keepdims=True)
        )
    return (scores >= decoder["threshold"] - 1e-5 * decoder["tensor"]["scale"]).tolist()


def objects(tensors: Any, decoder: Any) -> Any:
    """Return the objects of a detector, the best first: left, top, right, bottom, score, class."""
    how, rule = decoder["decoding"], decoder["rule"]
    row = decoder.get("row", [decoder["tensor"]])
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
    step = 1e-5 * decoder["tensor"]["scale"]
    kept: list[Any] = []
    for at in np.argsort(-scores, kind="stable"):
        one = [*boxes[at].tolist(), float(scores[at]), int(labels[at])]
        better = [other for other in kept if other[5] == one[5]]
        if one[4] < rule["threshold"] - step or len(kept) == rule["most_objects"]:
            break
        if one[5] >= 0 and all(overlap(one, other) <= rule["suppression"] for other in better):
            kept.append(one)
    return kept


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


def mask(values: Any, decoder: Any) -> Any:
    """Return the class of each pixel, (rows, columns)."""
    shape = decoder["tensor"]["shape"][1 if decoder.get("frames") else 0 :][1:]
    scores = values.reshape(*shape[:2], -1)
    if decoder["pixels"] == "classes":
        return scores[..., 0].astype(int)
    if scores.shape[2] > 1:
        return scores.argmax(2)
    nearly = 1e-5 * decoder["tensor"]["scale"]
    return (scores[..., 0] > decoder["threshold"] + nearly).astype(int)


def mean_iou(a: Any, b: Any) -> Any:
    """Return the mean over the classes that either mask has."""
    pairs = [(a == one, b == one) for one in np.union1d(a, b)]
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


def distance(a: Any, b: Any, measure: Any) -> Any:
    """Return how far values are apart; see docs/tasks.md of EdgeFlare."""
    norms, apart = [np.linalg.norm(one, axis=1) for one in (a, b)], np.linalg.norm(a - b, axis=1)
    if measure["distance"] == "normalized":
        a, b = (one.reshape(len(one), -1, measure["point_size"]) for one in (a, b))
        begin, end = measure["points"]
        unit = sum(np.linalg.norm(one[:, begin] - one[:, end], axis=1) for one in (a, b)) / 2
        each = np.linalg.norm(a - b, axis=2).mean(1) / np.maximum(unit, np.finfo(np.float32).tiny)
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


os.chdir(os.path.dirname(os.path.abspath(__file__)))
with open("finding.json", encoding="utf-8") as file:
    told = json.load(file)
answers = {}
for name, arm in told["arms"].items():
    if not arm["model"] or not os.path.isfile(arm["model"]):
        print(f"{name}: not run here ({arm['ran_on']})")
        continue
    tensors, decoders = run(arm), arm["decoder"].get("heads", [arm["decoder"]])
    answers[name] = [read(tensors, decoder) for decoder in decoders]
    if "measure" in arm["decoder"] or "mask" in arm["decoder"]:
        what = "values" if "measure" in arm["decoder"] else "pixels"
        print(f"{name}: {answers[name][0].size} {what} here ({arm['ran_on']})")
    else:
        found = arm["label"]
        if "symbols" in arm["decoder"]:
            found = [view["words"][name] for view in told["finding"]["answers"]]
        print(f"{name}: {answers[name]} here, {found} when it was found ({arm['ran_on']})")
if not all(name in answers for name in told["compared"]):
    print("put the models that are missing here (sha256 in finding.json)", file=sys.stderr)
    sys.exit(2)
one, other = (answers[name] for name in told["compared"])
decoder = told["arms"][told["compared"][1]]["decoder"]
measure, mask_rule, object_rule = map(decoder.get, ("measure", "mask", "rule"))
if object_rule is not None:
    deviates = not partners(one[0], other[0], object_rule["overlap"])
elif mask_rule is not None:
    iou, region = mean_iou(one[0], other[0]), largest_region(one[0] != other[0])
    deviates = iou < mask_rule["overlap"] or 0 < mask_rule["region"] <= region
    print(f"mean IoU {iou:.6g}, largest region that differs {region} pixels, as masks here")
elif measure is None:
    deviates = one != other
else:
    apart, tolerance = distance(one[0], other[0], measure), measure["tolerance"]
    before = (told["finding"]["strength"] + 1) * tolerance
    deviates = apart > tolerance
    print(f"{apart:.6g} apart here, {before:.6g} when it was found; tolerance {tolerance:g}")
print("It deviates here too." if deviates else "It does not deviate here.")
sys.exit(0 if deviates else 1)
