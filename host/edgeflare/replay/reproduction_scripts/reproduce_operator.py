"""Show what an operator does wrong, with nothing but numpy and a TFLite runtime.

python reproduce.py [KERNELS], of xnnpack, builtin and reference; those of the finding by default,
which a file beside this one runs where they are none of these, such as on_gpu.py those of a GPU.
Exit codes: 0 it shows here, 1 it does not, 2 the command has to be corrected.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
from typing import Any

try:
    import numpy as np

    try:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    except ImportError:
        from tflite_runtime.interpreter import Interpreter, OpResolverType
except ImportError as error:
    print(f"{error}: pip install numpy ai-edge-litert", file=sys.stderr)
    sys.exit(2)

KERNELS = {
    "xnnpack": "AUTO",
    "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "reference": "BUILTIN_REF",
}
HANG_SECONDS = 60
ANSWERS = "answers_here.npz"


def run(told: Any, kernels: str) -> None:
    """Run the model on each row of its inputs, and store what it answers."""
    stored, found = np.load("values.npz"), told["found"]
    given = [stored[name] for name in stored.files if name.startswith("input ")]
    inputs = [[values[row] for values in given] for row in range(found["rows"])]
    try:
        if found["steps"]:
            stepped = importlib.import_module("in_steps")
            rows = stepped.answers(lambda: opened(kernels, found["threads"]), stored, found)
        elif kernels in KERNELS:
            rows = answers(opened(kernels, found["threads"]), inputs)
        else:
            other = importlib.import_module(f"on_{kernels}")
            rows = other.answers("model.tflite", inputs, found["outputs"], found["precision"])
    except (ImportError, RuntimeError, ValueError) as error:
        sys.exit(f"The runtime here refuses the model: {error}")
    made: Any = {f"output {n}": np.stack([row[n] for row in rows]) for n in range(len(rows[0]))}
    np.savez(ANSWERS, **made)


def opened(kernels: str, threads: int) -> Any:
    """Open the model."""
    ops = OpResolverType[KERNELS[kernels]]
    return Interpreter("model.tflite", experimental_op_resolver_type=ops, num_threads=threads)


def answers(model: Any, inputs: Any) -> Any:
    """Return the outputs for each row of inputs."""
    model.allocate_tensors()
    rows, outputs = [], model.get_output_details()
    for row in inputs:
        for tensor, values in zip(model.get_input_details(), row, strict=True):
            model.set_tensor(tensor["index"], values)
        model.invoke()
        rows.append([model.get_tensor(output["index"]).copy() for output in outputs])
    return rows


def ended(kernels: str) -> str:
    """Run the model in a process of its own, since it may crash or hang; return how that ended."""
    command = [sys.executable, os.path.abspath(__file__), kernels, "--run"]
    try:
        done = subprocess.run(command, timeout=HANG_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "hang"
    if done.returncode < 0:
        print(f"The process dies of {signal.Signals(-done.returncode).name}.")
        return "crash"
    return "refused" if done.returncode else "answered"


def wrong(values: Any, stored: Any, n: int) -> Any:
    """Return which of the values that count lie outside of what is right."""
    low, high = stored[f"lowest {n}"], stored[f"highest {n}"]
    if values.shape != low.shape:
        return stored[f"counts {n}"]
    if values.dtype == low.dtype == high.dtype and values.dtype.kind != "f":
        outside = values != low
    else:
        outside = ~((values >= low) & (values <= high)) & ~(np.isnan(values) & np.isnan(low))
        outside |= (
            (values == 0) & (low == 0) & (high == 0) & (np.signbit(values) != np.signbit(low))
        )
    return outside & stored[f"counts {n}"]


def bias(values: Any, stored: Any, n: int) -> Any:
    """Return how far values are off on average, in steps to the side on which they were."""
    errors = values.ravel()[stored[f"chosen {n}"]] - stored[f"nearest {n}"]
    return float(np.mean(errors * stored[f"signs {n}"]))


def compare(told: Any) -> bool:
    """Say what is wrong with the answers here; return whether it is what was found."""
    stored, here = np.load("values.npz"), np.load(ANSWERS)
    shows, arm = False, told["found"]["arm"]
    for n, result in enumerate(told["results"]):
        values = here[f"output {n}"]
        if result["bias"] is not None:
            mean, before = bias(values, stored, n), result["bias"]
            print(f"result {n}: off by {mean:.3f} steps on average, {before:.3f} when found")
            shows |= mean * before > 0 and abs(mean) > abs(before) / 2
        elif told["finding"]["symptom"] != "biased":
            count, of = wrong(values, stored, n).sum(), stored[f"counts {n}"].sum()
            print(f"result {n}: {count} of {of} values are wrong here", end="")
            known = f"{arm} {n}" in stored
            before = wrong(stored[f"{arm} {n}"], stored, n).sum() if known else "none known"
            print(f", {before} when it was found")
            shows |= count > 0
    return bool(shows)


os.chdir(os.path.dirname(os.path.abspath(__file__)))
with open("finding.json", encoding="utf-8") as file:
    told = json.load(file)
arguments = [argument for argument in sys.argv[1:] if argument != "--run"]
kernels = arguments[0] if arguments else told["found"]["kernels"]
others = [name[len("on_") : -len(".py")] for name in os.listdir() if name.startswith("on_")]
if len(arguments) > 1 or kernels not in (*KERNELS, *others):
    print(f"usage: python reproduce.py [{'|'.join((*KERNELS, *others))}]", file=sys.stderr)
    sys.exit(2)
if "--run" in sys.argv:
    run(told, kernels)
    sys.exit(0)
finding = told["finding"]
print(f"{finding['operator']} {finding['type']}: {finding['symptom'].replace('-', ' ')}", end="")
print(f" ({told['found']['ran_on']}); here with {kernels} kernels")
end = ended(kernels)
if end == "refused":
    print("It cannot be tried here.")
    sys.exit(2)
shows = compare(told) if end == "answered" and told["results"] else end == finding["symptom"]
print("It shows here too." if shows else "It does not show here.")
sys.exit(0 if shows else 1)
