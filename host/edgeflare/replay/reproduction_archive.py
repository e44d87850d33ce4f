"""A finding as one zip: what a vendor's bug tracker asks for."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from edgeflare.core.joint_answer import MOST_SCORES, split_decision
from edgeflare.core.query import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import GivenRows, Tensor, float_tensors, unpack_rows
from edgeflare.diagnose.explain_document import ExplainDocument, ExplainedFinding
from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE, HostModel, Invocation
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.models.tflite import open_tflite
from edgeflare.outside_text import json_value
from edgeflare.pages.facts import PLACES
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import plain_json
from edgeflare.replay.failing_operator import (
    FailingOperator,
    cut_out,
    saved,
    saved_together,
    where_it_begins,
)
from edgeflare.replay.past_run import PastRun
from edgeflare.run.run_document import Finding, RunDevice, to_json
from edgeflare.untrusted_text import printable
from edgeflare_protos.kernel_sets import (
    KERNEL_SETS,
    Kernels,
    is_kernel_set,
    is_tflite_kernel_set,
)

SCHEMA = "edgeflare.reproduction/v1"
SCRIPT = "reproduce.py"
"""Script for a classifier of one input and one output, and the name of the other in archives."""

TENSORS_SCRIPT = "reproduce_tensors.py"
"""Script for all other models: it knows frames and states, and reads outputs by what is beside it
as `OUTPUTS`."""

OUTPUTS = "outputs.py"
"""What reads and compares outputs, in the archive."""

_OUTPUTS_BY_TASK = {
    "classification": "class_outputs.py",
    "detection": "object_outputs.py",
    "regression": "value_outputs.py",
    "segmentation": "mask_outputs.py",
    "threshold": "threshold_outputs.py",
    "transcript": "text_outputs.py",
}

SCRIPTS = Path(__file__).with_name("reproduction_scripts")
"""Scripts for the archive, which nothing here imports."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time stamp of every entry, so that the same finding is the same file."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What was written.

    Attributes:
        files: the contents by name.
        operator: the operator that is in it as a model of its own; None where there is none.

    """

    files: dict[str, bytes]
    operator: FailingOperator | None


def export(
    past: PastRun,
    pair: Pair,
    seed_id: int,
    path: Path,
    explanations: ExplainDocument | None,
    *,
    with_models: bool,
) -> Reproduction:
    """Write the reproduction of a finding as a zip, and return what is in it.

    Args:
        past: the run.
        pair: as `past.pair` returns it.
        seed_id: the seed that the finding came from, or that deviates itself.
        path: the zip; replaced if it is there.
        explanations: explanations of the run's findings, where there are some.
        with_models: put both models in; else their hashes only.

    Raises:
        UserError: the run has no such finding, or a file is gone or changed.

    """
    require_scriptable(pair.interface)
    entries = {entry.seed_id: entry for entry in past.deviations}
    if not entries:
        raise UserError(f"{past.directory.path} has no finding that still deviates: none to export")
    if seed_id not in entries:
        known = ", ".join(map(str, list(entries)[:12])) or "none"
        raise UserError(
            f"{past.directory.path} has no finding from seed {seed_id}; it has those of seeds"
            f" {known}{', …' if len(entries) > 12 else ''}"
        )
    entry = entries[seed_id]
    with with_shapes_folded(pair) as opened:
        made = _reproduction(past, opened, entry, explanations, with_models=with_models)
    write_atomically(path, zipped(made.files))
    return made


def _reproduction(
    past: PastRun,
    pair: Pair,
    entry: Finding,
    explanations: ExplainDocument | None,
    *,
    with_models: bool,
) -> Reproduction:
    """Gather the files of a finding; see `export`."""
    stored = past.files(entry)
    simple = _is_simple(past, pair)
    files = {
        **_scripts(pair.interface.task, simple=simple),
        f"input{PurePath(entry.file).suffix}": stored[entry.file],
        f"seed{PurePath(entry.seed_file).suffix}": stored[entry.seed_file],
    }
    kernels = past.header.plan.ensemble[0]
    given = _given(past, pair, entry)
    encoded = given["compressed"].given.rows
    arms: dict[str, Any] = {}
    if "original" in given:
        arms["original"] = _original(past, pair, entry)
    arms["twin"] = _compressed(past, entry, "twin")
    arms["device"] = _compressed(past, entry, "device")
    for model, inputs in given.items():
        files[f"{model}_input.{'npy' if simple else 'npz'}"] = inputs.file(simple=simple)
    if not simple:
        for name, arm in arms.items():
            model = name if name in given else "compressed"
            decoder = past.header.arms[Arm(name)]
            decisions = _decisions(decoder, arm["label"])
            read = {"decoder": plain_json(decoder), "decisions": decisions}
            arms[name] = {**arm, **given[model].called(), "input": f"{model}_input.npz", **read}
    explained = _explained(explanations, entry)
    operator = where_it_begins(explained) if explained is not None and simple else None
    cut = {}
    if operator is not None:
        cut = cut_out(read_model_file(pair.executed), operator.operator_index, kernels, encoded)
        operator = operator if cut else None
        files |= cut
    if with_models:
        files["compressed.tflite"] = read_model_file(pair.executed)
        if "original" in arms and arms["original"]["model"]:
            files[arms["original"]["model"]] = read_model_file(Path(str(pair.original)))
    whole = {
        "schema": SCHEMA,
        "sha256": _hashes(past, pair),
        "compared": [arm.value for arm in past.header.plan.goal.compared],
        "arms": arms,
        "finding": to_json(entry),
        "explanation": msgspec.to_builtins(explained),
        "operator": None
        if operator is None
        else {**asdict(operator), "kernels": kernels, "files": sorted(cut)},
        "run": _run(past),
    }
    files["finding.json"] = json_bytes(whole)
    return Reproduction(files, operator)


def require_scriptable(interface: PairInterface) -> None:
    """Refuse a pair whose models no script of an export can run, before anything is asked for."""
    if interface.task not in _OUTPUTS_BY_TASK:
        raise UserError(
            f"the task {interface.task} is of another package, which the script of an export cannot"
            " import: pass on the run directory and the pair instead"
        )
    if any(
        pair_interface.post_processing is not None
        for pair_interface in (interface, interface.on_device)
    ):
        raise UserError(
            "the script of an export cannot import the Python function that reads this pair's"
            " outputs: pass on the run directory and the pair instead"
        )
    if interface.invocation.signature:
        raise UserError(
            "the script of an export runs a model's first graph, and this pair names the signature"
            f" {interface.invocation.signature!r}: pass on the run directory and the pair instead"
        )


@dataclass(frozen=True, slots=True)
class _GivenInputs:
    """What a model is given for a finding: a row of its inputs, and how it is called on them."""

    given: GivenRows
    tensors: tuple[Tensor, ...]
    invocation: Invocation

    def file(self, *, simple: bool) -> bytes:
        """Return the row as an `.npy`, or each input as an array of an `.npz`, in their order."""
        if simple:
            return saved(self.given.rows)
        found = {"input": unpack_rows(self.tensors, self.given.rows)}
        if self.given.features is not None:
            found["feature"] = unpack_rows(float_tensors(self.tensors), self.given.features)
        return saved_together(
            {
                f"{name}_{n}": array[0]
                for name, arrays in found.items()
                for n, array in enumerate(arrays)
            }
        )

    def called(self) -> dict[str, object]:
        """Return how the script calls the model."""
        return {
            "inputs": [tensor.name for tensor in self.tensors],
            "frames": self.invocation.frames,
            "state": dict(self.invocation.state),
            "shapes": {name: list(shape) for name, shape in self.invocation.shapes.items()},
        }


def _scripts(task: str, *, simple: bool) -> dict[str, bytes]:
    """Return the scripts that show the deviation, by their names in the archive."""
    if simple:
        return {SCRIPT: (SCRIPTS / SCRIPT).read_bytes()}
    names = {SCRIPT: TENSORS_SCRIPT, OUTPUTS: _OUTPUTS_BY_TASK[task]}
    return {name: (SCRIPTS / stored).read_bytes() for name, stored in names.items()}


def _given(past: PastRun, pair: Pair, entry: Finding) -> dict[str, _GivenInputs]:
    """Return what each model is given, by "compressed" and "original".

    By "device" too, where the device has stages of its own.
    """
    image = past.directory.load_input(entry.file)[np.newaxis]
    interface, ids = pair.interface, (entry.seed_id,)
    name = str(pair.compressed)

    def given(model: HostModel, inputs: ModelInputs) -> _GivenInputs:
        fixed = past.directory.load_fixed(ids, inputs.fixed_names)
        made = inputs.given(Seeds(image, None, (), fixed, ids))
        return _GivenInputs(made, model.signature.inputs, model.invocation)

    kernels = past.header.plan.ensemble[0]
    with closing(open_tflite(pair.executed, kernels, interface.invocation)) as twin:
        inputs = ModelInputs(interface, twin.signature.inputs, name)
        found = {"compressed": given(twin, inputs)}
        if interface.device is not None:
            on_device = ModelInputs(interface.device, twin.signature.inputs, name)
            found["device"] = given(twin, on_device)
        if "original" in entry.labels and pair.original is not None:
            with closing(open_original(pair, inputs)) as original:
                theirs = ModelInputs(
                    interface, original.signature.inputs, pair.original, like=inputs
                )
                found["original"] = given(original, theirs)
    return found


def _hashes(past: PastRun, pair: Pair) -> dict[str, str | None]:
    """Return the sha256 of both models as they are run."""
    own = structs.asdict(past.header.pair.sha256)
    return own if pair.folded is None else {**own, "compressed": pair.folded.sha256}


def _is_simple(past: PastRun, pair: Pair) -> bool:
    """Whether both models are classifiers with one input and one output, run once on an input.

    All arms have the same input then, and their outputs are read alike.
    """
    interface = pair.interface
    one_output = all(len(decoder.outputs) == 1 for decoder in past.header.arms.values())
    called_once = interface.invocation == ONCE and len(interface.inputs) == 1
    alike = interface.device is None
    return interface.task == "classification" and one_output and called_once and alike


def _run(past: PastRun) -> dict[str, object]:
    """Return what run it was; of the user's paths, which are nobody's business, the last part."""
    whole = to_json(past.document)
    described = json.dumps(whole["pair"])
    for function in PairInterface.of(past.header.pair).functions:
        last = PurePath(function).name
        described = described.replace(json.dumps(function), json.dumps(last))
    keys = ("edgeflare", "host", "devices", "plan", "classes")
    kept = {key: whole[key] for key in keys if key in whole}
    pair = {
        key: PurePath(value).name if key in PLACES and value else value
        for key, value in json_value(described).items()
    }
    return {**kept, "pair": pair}


def _original(past: PastRun, pair: Pair, entry: Finding) -> dict[str, object]:
    """Return how the script runs the original: not at all, unless it is a `.tflite` file."""
    file = pair.original_file
    runs = file is not None and file.suffix == ".tflite"
    return {
        "model": "original.tflite" if runs else None,
        "input": "original_input.npy",
        "kernels": "xnnpack",
        "op_resolver": KERNEL_SETS["xnnpack"].own_name,
        "threads": 1,
        "delegate": None,
        "ran_on": _host(past, past.document.host.original_runtime),
        **_answer(entry, "original"),
    }


def _compressed(past: PastRun, entry: Finding, arm: str) -> dict[str, object]:
    device = next(
        run_device for run_device in past.document.devices if run_device.name == entry.device
    )
    described, host = device.provenance, past.document.host
    runtime = f"{host.runtime} {host.runtime_version}"
    on_device = arm == "device"
    named = described.kernels if on_device else past.header.plan.ensemble[0]
    kernels = _kernels_of_script(named, entry)
    return {
        "model": "compressed.tflite",
        "input": "compressed_input.npy",
        "kernels": kernels,
        "op_resolver": KERNEL_SETS[kernels].own_name,
        "threads": described.threads if on_device else 1,
        "delegate": described.delegate if on_device else None,
        "ran_on": _place(device) if on_device else _host(past, runtime),
        **_answer(entry, arm),
    }


def _kernels_of_script(kernels: str, entry: Finding) -> Kernels:
    """Return the kernels of a finding, which a script runs; a stranger's run may name any."""
    if not is_kernel_set(kernels):
        raise UserError(
            f"finding {entry.seed_id} is of the kernel set {printable(kernels)!r}, which this"
            f" edgeflare does not know; it knows {', '.join(KERNEL_SETS)}"
        )
    if not is_tflite_kernel_set(kernels):
        raise UserError(
            f"finding {entry.seed_id} is of the {KERNEL_SETS[kernels].title} of {entry.device},"
            " which the script of an export does not run: `edgeflare replay` and `explain` do"
        )
    return kernels


def _host(past: PastRun, runtime: str | None) -> str:
    """Return what the host was."""
    return printable(f"the host: {past.document.host.machine}, {runtime}")


def _place(device: RunDevice) -> str:
    """Return what a device is; the script prints it, so it says what the script cannot do."""
    known = device.provenance
    text = f"{device.name}: {known.machine}, {known.runtime} {known.runtime_version}"
    if known.delegate:
        text += f"; with delegate {known.delegate}, which this script does not load"
    return printable(text)


def _answer(entry: Finding, arm: str) -> dict[str, object]:
    return {"label": entry.labels[arm], "probabilities": entry.probabilities[arm]}


def _decisions(decoder: Decoder, label: int | None) -> list[int | None]:
    """Return the decision of each part, such as a head or a frame, as the script reads them.

    A part of an arm that failed has None. There are none where decisions cannot be counted, or are
    too many to have a number each.
    """
    if not 0 < decoder.choices <= MOST_SCORES:
        return []
    heads = decoder.heads or (decoder,)
    if label is None:
        return [None] * sum(len(head.parts) for head in heads)
    labels = split_decision(label, decoder.parts) if decoder.heads else [label]
    joint = zip(heads, labels, strict=True)
    return [part for head, decided in joint for part in split_decision(decided, head.parts)]


def _explained(explanations: ExplainDocument | None, entry: Finding) -> ExplainedFinding | None:
    """Return what `edgeflare explain` said of a finding, if it was asked about this very input."""
    found = None if explanations is None else explanations.findings.get(str(entry.seed_id))
    return found if found is not None and found.sha256 == entry.sha256 else None


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return files as a zip, which is the same for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name])
    return buffer.getvalue()
