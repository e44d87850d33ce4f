"""Show a deviation with nothing but numpy and a TFLite runtime: python reproduce.py."""

import importlib
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
    # What the inputs were before they were quantized, where the outputs are compared with that.
    was = {name: f"feature_{n}" for n, name in enumerate(arm["inputs"])}
    before = {name: stored[key].reshape(steps, -1) for name, key in was.items() if key in stored}
    state = {name: np.zeros(takes[name]["shape"], np.float32) for name in arm["state"]}
    seen: dict[str, Any] = {name: [] for name in (*given, *gives)}
    for frame in range(steps):
        for name, rows in given.items():
            values = rows[frame].reshape(takes[name]["shape"])
            model.set_tensor(takes[name]["index"], values)
            known = before[name][frame] if name in before else real(values, takes[name])
            seen[name].append(known.ravel())
        for name, values in state.items():
            model.set_tensor(takes[name]["index"], raw(values, takes[name]))
        model.invoke()
        made = {
            name: real(model.get_tensor(details["index"]), details)
            for name, details in gives.items()
        }
        state = {name: made[output] for name, output in arm["state"].items()}
        for name, values in made.items():
            seen[name].append(values.ravel())
    return {name: np.stack(rows).astype(float) for name, rows in seen.items()}


def counted(tensors: Any, decoder: Any) -> Any:
    """Return the frames of all tensors that count for a decoder."""
    frames = decoder.get("frames", {"rule": "any", "first": 0})
    first = -1 if frames["rule"] == "last" else frames["first"]
    return {name: rows[first:] for name, rows in tensors.items()}


folder = os.path.dirname(os.path.abspath(__file__))
os.chdir(folder)
sys.path.insert(0, folder)
outputs = importlib.import_module("outputs")  # outputs.py beside this script, of the models' task
with open("finding.json", encoding="utf-8") as file:
    told = json.load(file)
answers = {}
for name, arm in told["arms"].items():
    if not arm["model"] or not os.path.isfile(arm["model"]):
        print(f"{name}: not run here ({arm['ran_on']})")
        continue
    tensors, decoders = run(arm), arm["decoder"].get("heads", [arm["decoder"]])
    answers[name] = [outputs.read(counted(tensors, decoder), decoder) for decoder in decoders]
    print(f"{name}: {outputs.describe(answers[name], name, told)} ({arm['ran_on']})")
if not all(name in answers for name in told["compared"]):
    print("put the models that are missing here (sha256 in finding.json)", file=sys.stderr)
    sys.exit(2)
deviates, line = outputs.compare(*(answers[name] for name in told["compared"]), told)
if line:
    print(line)
print("It deviates here too." if deviates else "It does not deviate here.")
sys.exit(0 if deviates else 1)
