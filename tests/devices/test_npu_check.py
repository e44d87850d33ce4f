"""Whether there is what an NPU needs is looked for, and what is missing is named."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec

import pytest

from edgeflare.devices.npu_check import check_npu


@pytest.mark.skipif(find_spec("openvino") is not None, reason="there may be an NPU")
def test_nothing_here_passes_for_an_npu() -> None:
    """The runtime's own package has Intel's dispatch library, which alone is none."""
    assert metadata.version("ai-edge-litert")
    check = check_npu()
    assert (check.found, check.needed) == ("", False)
    assert "\n" not in check.mend
    for vendor in ("intel", "qualcomm", "mediatek", "google-tensor"):
        assert vendor in check.mend
