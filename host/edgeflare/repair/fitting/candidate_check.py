"""Whether a rewritten file is whole: a check before it is judged.

litert-quantizer 0.11 can write files in which an int8 tensor holds the bytes of a float32 one.
ai-edge-litert runs them, with other labels, and says nothing; tflite-runtime refuses them. Other
files load with some kernels and not with others.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice

from edgeflare.campaign.opened_pair import host_arm
from edgeflare.core.answer import Answer
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.models.tflite_graph import Graph
from edgeflare_protos.kernel_sets import KERNEL_SETS, TFLITE_KERNEL_SETS, Kernels

_INPUTS = 32

_MOST_DIFFERING = 1 / 8
"""Of the inputs, those that two kernel sets may answer differently, since their int8 kernels round
differently: six whole files of two networks did so on at most 1 in 250 of 500 to 2,000 images."""


def candidate_fault(pair: Pair, seeds: Seeds) -> str | None:
    """Return why a candidate does not count, in words; None where nothing is wrong with it.

    The bytes of its constants have to fit their types. On XNNPACK, the built-in kernels and the
    reference kernels of the host it has to load, to answer the first 32 seeds, and to decide as on
    the other ones, but for ties and an eighth of the seeds.

    Args:
        pair: whose compressed model is the candidate.
        seeds: inputs, as they are loaded for the pair.

    Raises:
        InfrastructureError: no worker process can be started, or it is lost.

    """
    try:
        graph = Graph(read_model_file(pair.compressed), pair.compressed.name)
    except UserError as unreadable:
        return str(unreadable)
    fault = _misfit(graph)
    first: Sequence[Answer] = ()
    for kernels in TFLITE_KERNEL_SETS:
        name = f"the {KERNEL_SETS[kernels].title}"
        if fault is not None:
            break
        try:
            answers = _answers(pair, seeds, kernels)
        except UserError as refused:
            return f"{name}: {refused}"
        first = first or answers
        fault = _failure(answers, name) or _disagreement(first, answers, name)
    return fault


def _misfit(graph: Graph) -> str | None:
    for tensor, raw in zip(graph.tensors, graph.model.subgraphs[0].tensors, strict=True):
        if not tensor.constant or not tensor.dtype or raw.sparsity is not None:
            continue
        held = len(graph.model.buffers[raw.buffer].data)
        if held != tensor.nbytes:
            return (
                f"tensor {tensor.index}, {tensor.name!r}, holds {held} bytes, but {tensor.dtype} "
                f"values of its shape take {tensor.nbytes}"
            )
    return None


def _answers(pair: Pair, seeds: Seeds, kernels: Kernels) -> tuple[Answer, ...]:
    name = str(pair.compressed)
    with closing(open_compressed(pair, kernels)) as model:
        inputs = ModelInputs(pair.interface, model.signature.inputs, name)
        arm = host_arm(pair, name, model, inputs, seeds)
        some = seeds.inputs[:_INPUTS]
        ids = seeds.seed_ids[: len(some)]
        batch = arm.submit(arm.given(some, ids)).result()
        return tuple(islice(arm.decoder.read(batch), len(some)))


def _failure(answers: Sequence[Answer], name: str) -> str | None:
    failures = [one.failure for one in answers if one.failure is not None]
    if not failures:
        return None
    kinds = ", ".join(sorted(set(failures)))
    return f"{name}: no answer on {len(failures)} of {len(answers)} seeds ({kinds})"


def _disagreement(first: Sequence[Answer], answers: Sequence[Answer], name: str) -> str | None:
    pairs = list(zip(first, answers, strict=True))
    differing = sum(one.differs(other) and not one.differs_by_tie(other) for one, other in pairs)
    if differing <= _MOST_DIFFERING * len(pairs):
        return None
    return (
        f"{name}: other decisions than with the {KERNEL_SETS['xnnpack'].title} on {differing} of "
        f"{len(pairs)} seeds"
    )
