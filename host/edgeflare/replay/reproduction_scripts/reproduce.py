"""Show a deviation with nothing but numpy and a TFLite runtime: python reproduce.py."""

import json
import os
import sys

import numpy as np

try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError:
    from tflite_runtime.interpreter import Interpreter, OpResolverType

os.chdir(os.path.dirname(os.path.abspath(__file__)))
with open("finding.json", encoding="utf-8") as file:
    told = json.load(file)
labels = {}
for name, arm in told["arms"].items():
    labels[name], where = arm["label"], "not run here"
    if arm["model"] and os.path.isfile(arm["model"]):
        ops, threads = OpResolverType[arm["op_resolver"]], arm["threads"]
        model = Interpreter(arm["model"], experimental_op_resolver_type=ops, num_threads=threads)
        model.allocate_tensors()
        model.set_tensor(model.get_input_details()[0]["index"], np.load(arm["input"]))
        model.invoke()
        output = model.get_tensor(model.get_output_details()[0]["index"])
        labels[name] = output.argmax() if np.isfinite(output).all() else None
        where = f"{labels[name]} here"
    print(f"{name}: {where}, {arm['label']} when it was found ({arm['ran_on']})")
if not os.path.isfile("compressed.tflite"):
    print("put compressed.tflite here (its sha256 is in finding.json)", file=sys.stderr)
    sys.exit(2)
deviates = len({labels[name] for name in told["compared"]}) > 1
print("It deviates here too." if deviates else "It does not deviate here.")
sys.exit(0 if deviates else 1)
