"""A conformance run replayed: its findings tried again on a device, and what still fails kept."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

import edgeflare
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.opened_conformance import OpenedConformance
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.conform.record.conform_finding import kept_error
from edgeflare.conform.record.conform_header import (
    ConformHeader,
    ConformRequest,
    specification_digest,
)
from edgeflare.conform.record.finding_files import StoredModel, store_finding, stored_model
from edgeflare.conform.retried_findings import RetriedFinding, retried_findings
from edgeflare.conform.rounds.conform_outcome import conform_outcome
from edgeflare.conform.rounds.conformance import Conformance
from edgeflare.conform.rounds.posed_draft import PosedDraft
from edgeflare.conform.specification.operator_specification import ExactAnswer
from edgeflare.conform.verdict.exact_rows import exact_rows
from edgeflare.errors import UserError
from edgeflare.models.run_host import describe_host
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.run.run_directory import CONFORM_DOCUMENT, RunDirectory


def stored_models(directory: RunDirectory, document: ConformDocument) -> list[StoredModel]:
    """Return the models of all findings of a run.

    Raises:
        UserError: it found nothing, or a file is gone or damaged.

    """
    if not document.findings:
        raise UserError(f"{directory.path} found nothing: there is nothing to try again")
    return [stored_model(directory, one) for one in document.findings]


def replay_findings(
    document: ConformDocument,
    models: Sequence[StoredModel],
    opened: OpenedConformance,
    out: RunDirectory,
) -> list[RetriedFinding]:
    """Try findings again, and write those that fail as a run of their own.

    Args:
        document: of the run that found them.
        models: as `stored_models` returns them.
        opened: what runs them.
        out: an empty run directory.

    Raises:
        InfrastructureError: the device does not come back.

    """
    begin = time.monotonic()
    found = retried_findings(models, opened.arms)
    cells = {node.cell for one in models for node in one.draft.nodes}
    asked = document.request
    request = ConformRequest(
        *(tuple(sorted(cells)), asked.drawing, False, len(models), None, asked.rng_seed),
        model=asked.model,
    )
    header = ConformHeader(
        edgeflare.__version__,
        request,
        opened.provenance,
        describe_host(None),
        specification_digest(),
    )
    state, coverage = Conformance(), Coverage(request.cells)
    for one in found:
        state.add(one.judged)
        coverage.add(one.judged.draft, one.judged.outcome)
    seconds = time.monotonic() - begin
    written = conform_outcome(header, state, coverage, (), None, "models", seconds)
    warning = (
        f"This is a replay of {len(found)} findings of a run on {document.device.name}: what it did"
        " not try may fail as well."
    )
    fails = (one for one in found if one.outcome in ("still", "otherwise"))
    written = msgspec.structs.replace(
        written, findings=tuple(_kept(one, out) for one in fails), warnings=(warning,)
    )
    write_atomically(out.path / CONFORM_DOCUMENT, json_bytes(msgspec.to_builtins(written)))
    return found


def _kept(one: RetriedFinding, out: RunDirectory) -> FoundFault:
    """Store the files of a finding that fails, and return what the document says of it."""
    was, now = one.finding, one.judgement
    worst = kept_error(now.worst)
    whole = PosedDraft(one.stored.draft, one.stored.model, one.stored.operands).whole
    name = store_finding(out, was.number, whole, one.answers, _exact(one.stored))
    smallest = msgspec.structs.replace(was.smallest, worst=worst, detail=now.detail, file=name)
    return msgspec.structs.replace(
        was,
        verdict=now.verdict,
        symptom=now.symptom,
        counted=now.counted,
        failing=1,
        worst=worst,
        unit=now.unit,
        wrong=tuple(now.wrong),
        detail=now.detail,
        smallest=smallest,
    )


def _exact(stored: StoredModel) -> Sequence[ExactAnswer]:
    if len(stored.draft.nodes) > 1:
        return ()
    (node,), (graph,) = stored.draft.nodes, stored.model.alone
    rows = stored.finding.smallest.rows
    return exact_rows(known_operators()[node.operator], graph, stored.files.operands, rows)
