"""What the host is."""

from __future__ import annotations

import platform
from importlib.metadata import version

import pytest

from edgeflare.models.host_description import describe_host


def test_it_is_described_as_a_device_is() -> None:
    told = describe_host(None)
    assert told["machine"] == platform.machine()
    assert told["python"] == platform.python_version()
    assert told["cores"] > 0
    assert told["os"]
    assert version(told["runtime"]) == told["runtime_version"]
    assert told["original_runtime"] is None


def test_the_originals_runtime_is_told_by_what_the_original_is() -> None:
    told = describe_host("models/a.TFLITE")
    assert told["original_runtime"] == f"{told['runtime']} {told['runtime_version']}"
    assert describe_host("a.py:net")["original_runtime"] == f"Python {platform.python_version()}"
    onnxruntime = pytest.importorskip("onnxruntime")
    assert describe_host("a.onnx")["original_runtime"] == f"onnxruntime {onnxruntime.__version__}"
