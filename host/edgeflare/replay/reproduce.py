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
    """Return the label that an arm gives here; None where its answer is not finite."""
    model = Interpreter(
        str(HERE / arm["model"]),
        experimental_op_resolver_type=KERNELS[arm["kernels"]],
        num_threads=arm["threads"],
    )
    model.allocate_tensors()
    model.set_tensor(model.get_input_details()[0]["index"], np.load(HERE / arm["input"]))
    model.invoke()
    output = model.get_tensor(model.get_output_details()[0]["index"])
    return output.argmax() if np.isfinite(output).all() else None


told = json.loads((HERE / "finding.json").read_text(encoding="utf-8"))
arms = told["arms"]
labels = {name: arm["label"] for name, arm in arms.items()}
ran = [name for name, arm in arms.items() if arm["model"] and (HERE / arm["model"]).is_file()]
for name, arm in arms.items():
    if name in ran:
        labels[name] = label(arm)
    here = f"{labels[name]} here" if name in ran else "not run here"
    print(f"{name}: {here}, {arm['label']} when it was found ({arm['ran_on']})")
    if arm["delegate"]:
        print(f"{name}: it ran with delegate {arm['delegate']}, which this script does not load")
if "device" not in ran:
    print(f"put {arms['device']['model']} here (its sha256 is in finding.json)", file=sys.stderr)
    sys.exit(2)
deviates = len({labels[name] for name in told["compared"]}) > 1
print("It deviates here too." if deviates else "It does not deviate here.")
sys.exit(0 if deviates else 1)
