from __future__ import annotations

from dataclasses import replace

import pytest

from conformed_runs import BOARD
from edgeflare.cli import known_issue_listing
from edgeflare.cli.known_issue_listing import issue_of_operator, probed_devices
from edgeflare.conform.findings.known_issues import known_issues
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.issue_reproduction import probe_model
from edgeflare.devices.profile import EMULATED_ALL, Profile
from edgeflare.errors import InfrastructureError
from edgeflare.trust import KEPT_ONLY
from edgeflare_protos.kernel_sets import Kernels


@pytest.mark.parametrize(
    ("thread", "kernels", "version", "said"),
    [
        ("LiteRT#9272", "gpu", "2.3.0", "PAD there is as in LiteRT#9272, open in September 2026: "),
        ("LiteRT#9272", "builtin", "2.3.0", ""),
        ("LiteRT#9256", "xnnpack", "2.1.6", "CONV_2D there is as in LiteRT#9256, open"),
        ("LiteRT#9256", "xnnpack", "2.2.0", ""),
    ],
)
def test_an_operator_of_a_model_is_as_in_an_issue(
    thread: str, kernels: Kernels, version: str, said: str
) -> None:
    (issue,) = [one for one in known_issues() if one.thread == thread]
    assert issue.probe is not None
    content = graph_file(probe_model(issue.operator, issue.probe)[1].graph)
    device = replace(BOARD, kernels=kernels, runtime="ai-edge-litert", runtime_version=version)
    found = issue_of_operator(content, 0, device)
    assert found.startswith(said)
    assert bool(found) == bool(said)
    assert issue_of_operator(content, 1, device) == ""
    assert issue_of_operator(b"no model", 0, device) == ""


def test_a_device_on_which_nothing_could_be_tried_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(profile: Profile, *_: object) -> None:
        raise InfrastructureError(f"{profile.kernels} do not answer")

    monkeypatch.setattr(known_issue_listing, "open_conformance", lost)
    with pytest.raises(InfrastructureError, match=r"^emulated-all: none of its \d+ kernel sets"):
        probed_devices(known_issues(), EMULATED_ALL, KEPT_ONLY)
    assert "reference do not answer" in capsys.readouterr().err
