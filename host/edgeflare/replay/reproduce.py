"""Show a deviation with nothing but numpy and a TFLite runtime: python reproduce.py."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError:
    from tflite_runtime.interpreter import Interpreter, OpResolverType

HERE = Path(__file__).parent
KERNELS = {
    "xnnpack": OpResolverType.AUTO,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}


def label(arm: "dict[str, Any]") -> Any:
    """Return the label that an arm gives here, or gave there if its model is not here."""
    if arm["model"] is None or not (HERE / arm["model"]).is_file():
        return arm["label"]
    model = Interpreter(
        str(HERE / arm["model"]),
        experimental_op_resolver_type=KERNELS[arm["kernels"]],
        num_threads=arm["threads"],
    )
    model.allocate_tensors()
    model.set_tensor(model.get_input_details()[0]["index"], np.load(HERE / arm["input"]))
    model.invoke()
    return model.get_tensor(model.get_output_details()[0]["index"]).argmax()


arms = json.loads((HERE / "finding.json").read_text(encoding="utf-8"))["arms"]
labels = {name: label(arm) for name, arm in arms.items()}
for name, arm in arms.items():
    print(f"{name}: {labels[name]} here, {arm['label']} when it was found ({arm['ran_on']})")
deviates = len(set(labels.values())) > 1
print("It deviates here too." if deviates else "It does not deviate here.")
sys.exit(0 if deviates else 1)
