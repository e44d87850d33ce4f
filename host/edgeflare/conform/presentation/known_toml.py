"""The findings of a conformance run as a `known.toml`, by which another run knows them."""

from __future__ import annotations

from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.findings.known_findings import known_table
from edgeflare.conform.record.conform_document import ConformDocument


def known_text(document: ConformDocument) -> str:
    """Return a `known.toml` that names the findings of a run that count.

    A bias is named without its condition. It is a mean, which some models show and others like
    them do not, so that another run learns another condition.

    Args:
        document: as `read_conformance` returns it.

    """
    device = document.device
    where = f"{device.name} {device.runtime} {device.runtime_version} {device.kernels}"
    return "\n".join(
        known_table(
            FindingKey(one.operator, one.type, one.verdict, one.symptom, one.counted),
            FaultCondition.parsed([] if one.symptom == "biased" else one.condition),
            one.known or f"found on {where}: {one.detail}",
        )
        for one in document.findings
        if one.counted
    )
