"""A finding of a conformance run as a report of a bug, ready to paste: Markdown with a script."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from edgeflare.conform.operator_graph import Values
from edgeflare.conform.presentation.conform_words import (
    condition_words,
    settings_words,
    title_of,
    worst_words,
)
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.conform.record.finding_files import StoredModel
from edgeflare.conform.version_table import VersionDocument
from edgeflare.pages.facts import count_of
from edgeflare.untrusted_text import for_markdown, printable
from edgeflare_protos.kernel_sets import KERNEL_SETS, is_kernel_set, is_tflite_kernel_set

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
        runtime = document.host.runtime
    title = KERNEL_SETS[kernels].title if is_kernel_set(kernels) else kernels
    adapter = f", {device.adapter}" if arm == "device" and device.adapter else ""
    size = worst_words(finding)
    wrong = dict.fromkeys(kernels if name == arm else name for name in finding.wrong)
    lines = [
        f"# {for_markdown(title_of(finding))}: {finding.symptom} with the {title}",
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
    size = len(stored.files.model) + sum(values.nbytes for values in operands)
    if not is_tflite_kernel_set(kernels) or size > _MOST_BYTES:
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
