"""Runs models of operators, packed into one file, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import OperatorGraph, Values, side_by_side

_PROGRAM = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
folder, kernels = sys.argv[1:]
resolver = OpResolverType[kernels]
known = Interpreter(f"{folder}/packed.tflite", experimental_op_resolver_type=resolver)
known.allocate_tensors()
given = np.load(f"{folder}/given.npz")
for at, one in enumerate(known.get_input_details()):
    known.set_tensor(one["index"], given[f"arr_{at}"])
known.invoke()
answers = [known.get_tensor(one["index"]) for one in known.get_output_details()]
np.savez(f"{folder}/answers.npz", *answers)
"""


def kernel_answers(
    graphs: Sequence[OperatorGraph],
    operands: Sequence[Sequence[Values]],
    folder: Path,
    kernels: str = "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
) -> list[list[Values]]:
    """Return the results of each model; a kernel that crashes fails the test, and no more.

    Args:
        graphs: of any operators.
        operands: for each of them the values of its inputs.
        folder: for files.
        kernels: name of a member of the runtime's `OpResolverType`.

    """
    (folder / "packed.tflite").write_bytes(graph_file(side_by_side(graphs)))
    np.savez(folder / "given.npz", *(one for given in operands for one in given))
    program = [sys.executable, "-c", _PROGRAM, str(folder), kernels]
    subprocess.run(program, check=True, capture_output=True, timeout=300)
    with np.load(folder / "answers.npz") as found:
        answers = iter([found[f"arr_{at}"] for at in range(len(found.files))])
    return [[next(answers) for _ in graph.outputs] for graph in graphs]
