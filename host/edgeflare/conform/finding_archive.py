"""A finding of a conformance run as one zip: what a vendor's bug tracker asks for.

It has a report of the bug, ready to paste: Markdown with a script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.graph_file import SIGNATURES
from edgeflare.conform.graphs.graph_turns import taking_turns
from edgeflare.conform.graphs.graph_verdict import TURNS, invocation_told
from edgeflare.conform.operator_graph import GraphValue, Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.presentation.conform_words import (
    condition_words,
    settings_words,
    title_of,
    worst_words,
)
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.conform.record.finding_files import StoredModel, stored_model
from edgeflare.conform.runtime_arms import shows_only
from edgeflare.conform.verdict.arm_comparison import DEVICE, MeanLimits, MeanSide, Ruler
from edgeflare.conform.verdict.operator_verdict import ruler
from edgeflare.conform.version_table import VersionDocument
from edgeflare.errors import UserError
from edgeflare.pages.facts import count_of, in_words
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.replay.failing_operator import saved_together
from edgeflare.replay.reproduction_archive import SCRIPT, SCRIPTS, zipped
from edgeflare.run.run_directory import RunDirectory
from edgeflare.untrusted_text import for_markdown, printable
from edgeflare_protos.kernel_sets import KERNEL_SETS, is_kernel_set, is_tflite_kernel_set

REPORT: Final = "bug_report.md"
"""The report's name in an archive."""

SCHEMA: Final = "edgeflare.operator-reproduction/v1"

_FLOAT_SLACK: Final = 1e-4
"""Share of a result's largest value by which a graph's float results may be off its operators' one
by one: fused ones round less often."""

_SCRIPT_OF_STEPS: Final = "in_steps.py"
"""What runs a model that takes turns, in the archive beside the script."""

_SCRIPT_OF_OPERATORS: Final = "reproduce_operator.py"
"""The script's name beside those of other findings; archives call any of them `SCRIPT`."""


def export_finding(
    directory: RunDirectory,
    document: ConformDocument,
    number: int,
    path: Path,
    *,
    with_weights: bool = False,
    versions: VersionDocument | None = None,
) -> dict[str, bytes]:
    """Write a finding as a zip, and return the files in it.

    Args:
        directory: the run directory.
        document: as `read_conformance` returns it.
        number: the finding's number.
        path: the zip; replaced if it is there.
        with_weights: whether it may hold parts of the user's model, where the fault shows with
            these alone.
        versions: the finding on released versions of the runtime, for the report; None for none.

    Raises:
        UserError: the run has no such finding, no script can show it, it holds parts of the user's
            model and may not, or a file is gone or damaged.
        OSError: the zip cannot be written.

    """
    finding = numbered(directory, document, number)
    _require_scriptable(finding, number, directory)
    if not with_weights:
        _require_own_weights(finding, document)
    stored = stored_model(directory, finding)
    arm = DEVICE if finding.verdict != "host" else finding.wrong[0]
    right, results = _right_together(stored) if stored.is_graph else _what_is_right(stored, arm)
    graph = stored.model.graph
    rows, outputs = finding.smallest.rows, len(graph.outputs)
    steps = _steps(finding)
    found = {**_found(document, arm), "rows": rows, "outputs": outputs, "steps": steps}
    told = {
        "schema": SCHEMA,
        "sha256": hashlib.sha256(stored.files.model).hexdigest(),
        "finding": msgspec.to_builtins(finding),
        "found": found,
        "results": results,
        "run": {
            key: msgspec.to_builtins(getattr(document, key))
            for key in ("edgeflare", "device", "host")
        },
    }
    files = {
        SCRIPT: (SCRIPTS / _SCRIPT_OF_OPERATORS).read_bytes(),
        **_script_of_runtime(found["kernels"]),
        **({_SCRIPT_OF_STEPS: (SCRIPTS / _SCRIPT_OF_STEPS).read_bytes()} if steps else {}),
        "model.tflite": stored.files.model,
        "values.npz": saved_together({**stored.files.arrays, **right}),
        "finding.json": json_bytes(told),
        REPORT: bug_report(document, stored, arm, versions).encode(),
    }
    write_atomically(path, zipped(files))
    return files


def numbered(directory: RunDirectory, document: ConformDocument, number: int) -> FoundFault:
    """Return a finding of a run.

    Raises:
        UserError: it has none of that number.

    """
    for finding in document.findings:
        if finding.number == number:
            return finding
    numbers = [str(finding.number) for finding in document.findings]
    known = f"it has those from {numbers[0]} to {numbers[-1]}" if numbers else "it found nothing"
    raise UserError(f"{directory.path} has no finding {number}: {known}")


def _require_own_weights(finding: FoundFault, document: ConformDocument) -> None:
    """Refuse a finding that shows with weights of the user's model alone.

    With weights that are drawn, where it shows with these, its model was stored so.
    """
    if any(operator.given is not None for operator in finding.smallest.operators):
        file = "the model of --from" if document.model is None else printable(document.model.file)
        raise UserError(
            f"finding {finding.number} holds an operator of {file} as it stands, with its weights,"
            " since it did not show with drawn ones: add --include-weights to pass them on"
        )


def _require_scriptable(finding: FoundFault, number: int, directory: RunDirectory) -> None:
    """Refuse a finding that no script of one model shows."""
    why = shows_only(finding)
    invocation = invocation_told(finding.arrangement)
    if invocation and invocation not in TURNS:
        why = f"where it is invoked {invocation}"
    if why is not None:
        raise UserError(
            f"finding {number} shows only {why}, which no script of one model can show: pass on"
            f" {directory.path}, and try it by `edgeflare replay`"
        )


def _steps(finding: FoundFault) -> list[dict[str, str]]:
    """Return the turns of a finding: the signature of each, and how its inputs are named."""
    turns = TURNS.get(invocation_told(finding.arrangement))
    if turns is None:
        return []
    first, second = ("", "") if turns == "shapes" else SIGNATURES
    own = {"signature": first, "inputs": "input"}
    return [own, {"signature": second, "inputs": "other input"}, own]


def _found(document: ConformDocument, arm: str) -> dict[str, Any]:
    """Return where and how a finding was seen, as the script runs it again."""
    if arm != DEVICE:
        return {
            "arm": arm,
            "kernels": arm,
            "threads": 1,
            "precision": None,
            "ran_on": printable(f"the host: {document.host.in_words}, {arm} kernels"),
        }
    device = document.device
    place = (
        f"{device.name}: {device.machine}, {device.runtime} {device.runtime_version},"
        f" {device.kernels} kernels"
    )
    if device.delegate:
        place += f", delegate {device.delegate}, which this script does not load"
    return {
        "arm": arm,
        "kernels": device.kernels,
        "threads": device.threads,
        "precision": device.precision,
        "ran_on": printable(place),
    }


def _script_of_runtime(kernels: str) -> dict[str, bytes]:
    """Return the script that runs a model on kernels that are not those of TFLite's interpreter."""
    if not is_kernel_set(kernels):
        raise UserError(
            f"the finding is of the kernel set {printable(kernels)!r}, which this edgeflare does"
            f" not know; it knows {', '.join(KERNEL_SETS)}"
        )
    if is_tflite_kernel_set(kernels):
        return {}
    script = SCRIPTS / f"on_{kernels}.py"
    if not script.exists():
        raise UserError(
            f"no script runs the {KERNEL_SETS[kernels].title}: try the finding by `edgeflare"
            " replay`"
        )
    return {script.name: script.read_bytes()}


def _what_is_right(stored: StoredModel, arm: str) -> tuple[dict[str, Values], list[dict[str, Any]]]:
    """Return for each result what may be answered, as arrays, and how the script holds it to that.

    Nothing of a model that crashes or hangs, whose answers say nothing.
    """
    finding, (node,), (graph,) = stored.finding, stored.draft.nodes, stored.model.alone
    if finding.symptom in ("crash", "hang"):
        return {}, []
    rows, operands = finding.smallest.rows, stored.files.operands
    by = ruler(known_operators()[node.operator], node.type, graph, operands, rows)
    apart = finding.verdict == "undefined"
    arrays: dict[str, Values] = {}
    results = []
    for n, (right, counted) in enumerate(zip(by.results, _by_result(by), strict=True)):
        low, high = right.allowed_range()
        arrays |= {f"lowest {n}": low, f"highest {n}": high}
        arrays[f"counts {n}"] = ~counted if apart else counted
        side = _biased_side(by.limits[n], stored, arm, n) if finding.symptom == "biased" else None
        if side is not None:
            arrays |= side[0]
        results.append({"unit": right.unit, "bias": None if side is None else side[1]})
    return arrays, results


def _right_together(stored: StoredModel) -> tuple[dict[str, Values], list[dict[str, Any]]]:
    """Return for each result of a graph what its operators answer one by one, within a step.

    Nothing of a model that crashes or hangs, or of which that is not known.
    """
    if stored.finding.symptom in ("crash", "hang"):
        return {}, []
    arrays: dict[str, Values] = {}
    results = []
    graph = stored.model.graph
    known = stored.files.answers("one by one")
    for n, (value, right) in enumerate(zip(_results_of(stored), known, strict=True)):
        whole = value.dtype.startswith(("int", "uint")) and value.quantization is not None
        slack = 0.0
        if value.dtype.startswith("float"):
            slack = _FLOAT_SLACK * float(np.max(np.abs(right), initial=0.0))
        elif whole and len(graph.nodes) > 1:
            slack = 1.0
        kind = right.dtype if not slack else np.dtype(np.float64)
        arrays |= {f"lowest {n}": (right - slack).astype(kind)} if slack else {f"lowest {n}": right}
        arrays |= (
            {f"highest {n}": (right + slack).astype(kind)} if slack else {f"highest {n}": right}
        )
        arrays[f"counts {n}"] = np.ones(right.shape, np.bool_)
        results.append({"unit": "steps" if whole else "", "bias": None})
    return arrays, results


def _results_of(stored: StoredModel) -> list[GraphValue]:
    """Return the results of a graph; of one that takes turns those of all of them."""
    turns = TURNS.get(invocation_told(stored.finding.arrangement))
    pair = None if turns is None else taking_turns(stored.whole, turns)
    graphs = [stored.model.graph]
    if pair is not None and pair.other is not None:
        graphs = [pair.graph, pair.other.graph, pair.graph]
    return [graph.values[at] for graph in graphs for at in graph.outputs]


def _by_result(by: Ruler) -> list[NDArray[np.bool_]]:
    """Return which values of each result count: (rows, *shape)."""
    sizes = np.cumsum([right.exact.values.size for right in by.results])[:-1]
    parts = np.split(by.judged, sizes)
    return [
        part.reshape(right.exact.values.shape)
        for part, right in zip(parts, by.results, strict=True)
    ]


def _biased_side(
    limits: MeanLimits | None, stored: StoredModel, arm: str, n: int
) -> tuple[dict[str, Values], float] | None:
    """Return the side to which a result was off on average, and by how many steps."""
    answers = stored.files.answers(arm)
    if limits is None or n >= len(answers):
        return None
    errors = answers[n].ravel()[limits.chosen] - limits.nearest

    def size(side: MeanSide) -> float:
        return abs(side.mean(errors))

    worst = max(limits.sides, key=size)
    if not size(worst):
        return None
    signs = {"chosen": limits.chosen, "nearest": limits.nearest, "signs": worst.signs}
    arrays = {f"{name} {n}": values for name, values in signs.items()}
    return arrays, float(np.mean(errors * worst.signs))


_MOST_BYTES: Final = 24_000
"""Most bytes of a model and its inputs that a report holds itself; trackers take 65,536 letters."""

_SHOWN: Final = 8
"""Values of a result that are listed."""


def bug_report(
    document: ConformDocument,
    stored: StoredModel,
    arm: str,
    versions: VersionDocument | None = None,
) -> str:
    """Return a finding as Markdown, without names of machines and of the user's files.

    Args:
        document: as `read_conformance` returns it.
        stored: the finding's model.
        arm: the arm that is wrong: "device", or a kernel set of the host.
        versions: the finding on released versions of the runtime; None for none.

    """
    finding, device = stored.finding, document.device
    kernels = device.kernels if arm == "device" else arm
    runtime = f"{device.runtime} {device.runtime_version}"
    if arm != "device":
        runtime = document.host.in_words
    title = KERNEL_SETS[kernels].title if is_kernel_set(kernels) else kernels
    adapter = f", {device.adapter}" if arm == "device" and device.adapter else ""
    size = worst_words(finding)
    wrong = dict.fromkeys(kernels if name == arm else name for name in finding.wrong)
    lines = [
        f"# {for_markdown(title_of(finding))}: {in_words(finding.symptom)} with the {title}",
        "",
        f"- Runtime: {runtime}, {title}{adapter}, on {device.machine}",
        f"- Fails when: {for_markdown(condition_words(finding))}",
        *([f"- By up to: {size}"] if size else []),
        f"- Seen in {count_of(finding.failing, 'model')} that EdgeFlare {document.edgeflare} drew;"
        f" all kernel sets that are wrong: {for_markdown(', '.join(wrong))}",
        *([f"- Known as {finding.issue.thread}"] if finding.issue and finding.issue.thread else []),
        "",
        "## The least model that shows it",
        "",
        *_model_lines(finding),
        "",
        *_values_lines(stored, arm),
        *_version_lines(versions),
        "## How to see it",
        "",
        *_script_lines(stored, kernels),
    ]
    return "".join(f"{printable(line)}\n" for line in lines)


def _model_lines(finding: FoundFault) -> Iterator[str]:
    for node in finding.smallest.operators:
        settings = ", ".join(f"{name} {value}" for name, value in settings_words(node))
        yield f"- {for_markdown(f'{node.operator} {node.type}: {settings}')}"


def _values_lines(stored: StoredModel, arm: str) -> Iterator[str]:
    """Yield the first row of the first result: what is exact, and what was answered."""
    exact, answers = stored.files.answers("exact"), stored.files.answers(arm)
    if not exact or not answers:
        return
    (graph,) = stored.model.alone
    result = graph.values[graph.outputs[0]]
    yield "| | first values of the first result |"
    yield "|---|---|"
    yield f"| exact | {_listed(exact[0][0])} |"
    yield f"| answered | {_listed(result.real(answers[0][0]))} |"
    yield ""


def _version_lines(versions: VersionDocument | None) -> Iterator[str]:
    """Yield a row for each kernel set, and a column for each version."""
    if versions is None:
        return
    (row,) = versions.findings
    yield f"| | {' | '.join(versions.runtimes)} | |"
    yield "|---" * (len(versions.runtimes) + 2) + "|"
    for kernels, since in row.since.items():
        numbers = (runtime.rpartition(" ")[2] for runtime in versions.runtimes)
        outcomes = (row.kernels.get(f"{kernels}@{number}", "–") for number in numbers)
        yield f"| {kernels} | {' | '.join(outcomes)} | {since} |"
    yield ""


def _listed(values: Values) -> str:
    shown = ", ".join(f"{value:.6g}" for value in np.ravel(values)[:_SHOWN].astype(np.float64))
    return f"{shown}, …" if values.size > _SHOWN else shown


def _script_lines(stored: StoredModel, kernels: str) -> Iterator[str]:
    operands = stored.files.operands
    in_turn = invocation_told(stored.finding.arrangement) in TURNS
    size = len(stored.files.model) + sum(values.nbytes for values in operands)
    if in_turn or not is_tflite_kernel_set(kernels) or size > _MOST_BYTES:
        yield "Attach the zip that this file lies in; unpacked, `python reproduce.py` shows it."
        return
    yield "```python"
    yield from _script(stored.files.model, operands, kernels, stored.finding.smallest.rows)
    yield "```"


def _script(model: bytes, operands: Sequence[Values], kernels: str, rows: int) -> Iterator[str]:
    resolver = KERNEL_SETS[kernels].own_name if is_kernel_set(kernels) else kernels
    yield "import base64"
    yield "import numpy as np"
    yield "from ai_edge_litert.interpreter import Interpreter, OpResolverType"
    yield ""
    yield f"MODEL = base64.b64decode({_literal(model)})"
    yield "INPUTS = ["
    for values in operands:
        content = _literal(np.ascontiguousarray(values).tobytes())
        yield f"    np.frombuffer(base64.b64decode({content}), {values.dtype.name!r})"
        yield f"    .reshape({tuple(values.shape)}),"
    yield "]"
    yield f"kernels = OpResolverType.{resolver}"
    yield "model = Interpreter(model_content=MODEL, experimental_op_resolver_type=kernels)"
    yield "model.allocate_tensors()"
    yield f"for row in range({rows}):"
    yield "    for tensor, values in zip(model.get_input_details(), INPUTS):"
    yield '        model.set_tensor(tensor["index"], values[row])'
    yield "    model.invoke()"
    yield '    print([model.get_tensor(one["index"]) for one in model.get_output_details()])'


def _literal(content: bytes) -> str:
    """Return bytes as a literal of base64."""
    return f'"{base64.b64encode(content).decode()}"'
