"""A loop of nothing but invocations, beside which commands are measured, in processor time."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

LOOP = """
import sys, time
from pathlib import Path
import numpy as np
from ai_edge_litert.interpreter import Interpreter
models = [Interpreter(path, num_threads=1) for path in sys.argv[1:3]]
random = np.random.default_rng(0)
tensors = []
for model in models:
    model.allocate_tensors()
    given = model.get_input_details()[0]
    values = random.uniform(-100, 100, (64, *given["shape"]))
    tensors.append((model, given["index"], model.get_output_details()[0]["index"],
                    values.astype(given["dtype"])))
begin = time.process_time()
for number in range(int(sys.argv[3])):
    if time.process_time() - begin > 5.0:
        break
    for model, at, out, values in tensors:
        model.set_tensor(at, values[number % 64])
        model.invoke()
        model.get_tensor(out)
    rounds = number + 1
print((time.process_time() - begin) / rounds)
"""
"""A program: with two models and a number of rounds, of which it makes what 5 s are enough for, it
prints the seconds of a round."""

ROUNDS = 2000


def models_of(pair: Path) -> tuple[str, str]:
    """Return the paths of the two models of a pair whose files have the usual names."""
    return str(pair / "original.tflite"), str(pair / "compressed.tflite")


def spent() -> float:
    """Return the processor seconds of all processes that this one waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def output(*command: str) -> str:
    """Return what a command writes, or end with its errors."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)}: {ran.stderr.strip() or ran.stdout[-500:]}")
    return ran.stdout
