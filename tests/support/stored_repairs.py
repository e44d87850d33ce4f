"""What a repair in a folder is about."""

from __future__ import annotations

from documents import run_device, run_host
from edgeflare.repair.candidate_store import RepairIdentity
from edgeflare.repair.repair_request import RepairRequest

REPAIR = RepairIdentity(
    version="test",
    pair="abc",
    run=None,
    findings=0,
    devices=(run_device().provenance,),
    host=run_host(),
    request=RepairRequest("auto", "float", False, "+5%", "+5%", None),
    packages=("zeroing 1.0",),
)
"""A repair by whatever method, of a pair without a run."""
