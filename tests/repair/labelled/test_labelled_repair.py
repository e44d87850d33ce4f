"""What devices and fresh inputs say of a repair by labels, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.repair.judging.candidate_model import CandidateModel
from edgeflare.repair.labelled.labelled_repair import LabelledCandidate, LabelledRepair
from edgeflare.repair.labelled_details import CHOOSE, JUDGE
from edgeflare.repair.repair_candidate import RepairCandidate, ReportProgress
from edgeflare.repair.repair_document import RepairDocument, TriedCandidate
from edgeflare.repair.repair_request import RepairRequest
from tampering import EXAMPLE

HOST = {"before": {CHOOSE: 10, JUDGE: 10}, "better": {CHOOSE: 12, JUDGE: 12}}
"""Seeds that are right on the host."""


class Counted(LabelledRepair[int]):
    """A repair whose one candidate is right on more seeds, as far as the host knows."""

    plan = "One candidate"
    on_device: Mapping[int, int]

    def candidates(self, progress: ReportProgress) -> list[LabelledCandidate[int]]:
        del progress
        made = RepairCandidate("better", self.pair.compressed.read_bytes(), None)
        tried = TriedCandidate(name=made.name, seconds=0.0)
        return [LabelledCandidate(tried, made, HOST["better"])]

    def before(self) -> Mapping[str, int]:
        return HOST["before"]

    def choice(self, evidence: Mapping[str, int]) -> str:
        return max(evidence, key=evidence.__getitem__)

    def verdict(
        self, before: Mapping[str, int], after: Mapping[str, int], name: str
    ) -> tuple[bool, str]:
        return after[JUDGE] > before[JUDGE], f"{name} gains on the host"

    def described(
        self,
        document: RepairDocument,
        evidence: Mapping[str, Mapping[str, int]],
        on_devices: Mapping[str, int],
    ) -> RepairDocument:
        del evidence
        self.shown = on_devices
        return document

    def seen_on(self, device: CandidateModel, on_host: int) -> int:
        inputs = self.parts[JUDGE][0][:1]
        assert device.answers(inputs, self.ids(1))[0].failure is None
        return self.on_device[on_host]

    def lost(self, before: int, after: int) -> str | None:
        return f"{after} are right instead of {before}" if after < before else None


@pytest.mark.parametrize(("on_device", "written"), [(10, True), (9, False)])
def test_a_candidate_by_which_a_device_loses_is_not_written(
    on_device: int, *, written: bool
) -> None:
    request = RepairRequest("auto", "float", False, "none", "none", None, 0)
    with ExitStack() as stack:
        profiles = find_profiles(["emulated-xnnpack"])
        repair = Counted(load_pair(EXAMPLE), profiles, request, stack)
        repair.on_device = {10: 10, 12: on_device}
        made = repair.outcome(lambda _name, _done, _total: None)
    assert made.document.written is written
    assert (made.repaired is not None) is written
    assert repair.shown == {"emulated-xnnpack": on_device}
    if not written:
        assert made.document.why.endswith(
            f"on emulated-xnnpack better loses: {on_device} are right instead of 10"
        )


def test_fresh_inputs_need_labels_and_those_that_are_seeds_are_counted(tmp_path: Path) -> None:
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        images, labels = arrays["images"][:5], arrays["labels"][:5]
    images[3:] = 255 - images[3:]
    file = tmp_path / "fresh.npz"
    request = RepairRequest("auto", "float", False, "none", "none", str(file), 0)
    profiles = find_profiles(["emulated-xnnpack"])
    np.savez(file, images=images)
    with ExitStack() as stack, pytest.raises(UserError, match=r"fresh.npz: 5 of 5 inputs have no"):
        Counted(load_pair(EXAMPLE), profiles, request, stack)
    np.savez(file, images=images, labels=labels)
    with ExitStack() as stack:
        repair = Counted(load_pair(EXAMPLE), profiles, request, stack)
        repair.on_device = {10: 10, 12: 12}
        made = repair.outcome(lambda _name, _done, _total: None)
    assert made.document.fresh_seeds == 3
    planned = Counted.planned(load_pair(EXAMPLE), profiles, request)
    assert "on emulated-xnnpack. 3 inputs of --test are seeds too" in planned
