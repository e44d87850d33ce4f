"""A repaired model and the one before on a device, on the inputs that judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.devices.device import Device
from edgeflare.errors import UserError
from edgeflare.models.decoder_rows import as_read_by
from edgeflare.models.model_file import read_model_file
from edgeflare.repair.judging.candidate_model import CandidateModel, open_candidate
from edgeflare.repair.judging.judgement import figures
from edgeflare.repair.judging.judgement_inputs import JudgedSet, SetName
from edgeflare.repair.repair_cost import BATCH, CostLimit, Latency, measure
from edgeflare.repair.repair_document import BeforeAndAfter, OnDevice


def judged_on(
    device: Device,
    content: bytes,
    opened: OpenedPair,
    sets: Mapping[SetName, JudgedSet],
    foretold: Mapping[SetName, Sequence[Answer]],
) -> OnDevice:
    """Evaluate a candidate and the model before on a device.

    Args:
        device: one of the pair's.
        content: the candidate's `.tflite` file.
        opened: the pair.
        sets: the inputs, by name.
        foretold: the candidate's answers to them on the host, as `candidate_answers` returns them.

    Raises:
        UserError: the device refuses the candidate.

    """
    with opened_on(device, read_model_file(opened.pair.compressed), opened) as there:
        before = _answers(there, sets)
    with opened_on(device, content, opened) as there:
        after = _answers(there, sets)
    pairs = [
        (answer, other)
        for name in sets
        for answer, other in zip(after[name], foretold[name], strict=True)
    ]
    return OnDevice(
        device=device.profile.name,
        sets={
            name: BeforeAndAfter(
                figures(input_set.original, before[name], input_set.labels),
                figures(input_set.original, after[name], input_set.labels),
            )
            for name, input_set in sets.items()
        },
        inputs=len(pairs),
        same_labels=sum(not answer.differs(other) for answer, other in pairs),
    )


def refusal_by(device: Device, content: bytes, opened: OpenedPair) -> str | None:
    """Return why a device does not open a candidate; None where it does."""
    try:
        with opened_on(device, content, opened):
            return None
    except UserError as refused:
        return str(refused)


def latency_on(
    device: Device,
    content: bytes,
    opened: OpenedPair,
    some: JudgedSet,
    limit: CostLimit | None = None,
) -> Latency:
    """Measure a candidate and the model before in turns on a device; see `measure`."""
    inputs, ids = some.inputs[:BATCH], some.seed_ids[:BATCH].tolist()
    rows = opened.panel.rows(Arm.TWIN, inputs, ids)
    called = opened.pair.interface.invocation
    with open_candidate(content, opened) as candidate:
        files = opened.pair.compressed, candidate.path
        return measure(device, files, rows, candidate.rows(inputs, ids), limit, called)


@contextmanager
def opened_on(device: Device, content: bytes, opened: OpenedPair) -> Iterator[CandidateModel]:
    """Open a model on a device, with its own kernels and threads, and on the host beside."""
    profile = device.profile
    called, read_by = opened.pair.interface.invocation, opened.pair.interface.on_device
    with (
        open_candidate(content, opened) as on_host,
        closing(device.open_as(on_host.path, profile.kernels, profile.threads, called)) as session,
    ):
        yield on_host.run_by(as_read_by(read_by, session))


def _answers(
    model: CandidateModel, sets: Mapping[SetName, JudgedSet]
) -> dict[SetName, list[Answer]]:
    return {
        name: model.answers(input_set.inputs, input_set.seed_ids.tolist())
        for name, input_set in sets.items()
    }
