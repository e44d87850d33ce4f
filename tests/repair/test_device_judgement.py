"""Tests of edgeflare.repair.device_judgement, on an emulated device."""

from __future__ import annotations

from collections.abc import Mapping

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.repair.device_judgement import cost_on, judged_on, refusal_by
from edgeflare.repair.judging.judged_inputs import TIGHT, WIDE, JudgedSet
from edgeflare.repair.judging.judgement import figures
from tampering import COMPRESSED, ORIGINAL


def test_a_device_answers_as_the_host_on_the_same_kernels(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    some = {name: sets[name] for name in (TIGHT, WIDE)}
    found = judged_on(opened.devices[0], ORIGINAL.read_bytes(), opened, some)
    assert found.asked == sum(len(one.images) for one in some.values())
    assert found.same_labels == found.asked
    for name, one in some.items():
        assert found.before[name] == figures(one.original, one.before, one.labels)
        assert found.after[name].deviating == 0


def test_what_a_device_does_not_open_is_refused_in_a_line(opened: OpenedPair) -> None:
    (device,) = opened.devices
    content = COMPRESSED.read_bytes()
    assert refusal_by(device, content, opened) is None
    reason = refusal_by(device, content[: len(content) // 2], opened)
    assert reason
    assert "\n" not in reason


def test_a_candidate_of_another_input_type_is_measured_too(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    cost = cost_on(opened.devices[0], ORIGINAL.read_bytes(), opened, sets[TIGHT].images)
    assert cost.bytes_after == len(ORIGINAL.read_bytes())
    assert cost.ratio > 0.0
