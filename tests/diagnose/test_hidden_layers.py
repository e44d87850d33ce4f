"""One tensor that cannot be read hides the operators that touch it, and no others."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np

from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.kernel_localization import KernelLocalizer
from edgeflare.models.model_probe import HostProbe, Probe, ProbeRefused
from edgeflare.models.tflite_graph import Graph
from tampering import class_reader
from unread_graphs import FLAT, LOGITS, MAGNITUDE, SOFTMAX, SPECTRUM, write_spectrum

RNG = np.random.default_rng(5)
WEIGHTS = RNG.normal(size=(3, 40)).astype(np.float32)
HALVED = np.array([[1], [0.5], [1]], np.float32)
GIVEN = RNG.normal(size=(1, 8, 8)).astype(np.float32)
REASON = "tensor 'spectrum' of RFFT2D (operator 0), complex64, cannot be read"


def on_host(content: bytes, capture: bool) -> Probe:
    return HostProbe(content, "builtin", capture=capture)


def test_a_fault_behind_a_complex_tensor_is_found_between_twin_and_original(
    tmp_path: Path,
) -> None:
    contents = [
        write_spectrum(tmp_path / f"{name}.tflite", weights)
        for name, weights in (("original", WEIGHTS), ("compressed", WEIGHTS * HALVED))
    ]
    original, compressed = (Graph(content) for content in contents)

    with closing(HostProbe(contents[1], "builtin", capture=True)) as probe:
        twin = dict(zip(probe.made, probe.run([GIVEN]), strict=True))
    twin[compressed.inputs[0]] = GIVEN
    reader = class_reader(contents[0])
    localizer = CompressionLocalizer(compressed, original, contents[0], on_host, reader)
    with closing(localizer):
        found = localizer.find(twin, GIVEN)
    assert [layer.layer.operator for layer in found.layers] == [FLAT, LOGITS, SOFTMAX]
    assert [layer.layer.operator for layer in found.beyond] == [LOGITS]
    assert REASON in found.note
    assert "the other layers are compared" in found.note


def test_device_and_twin_are_compared_before_and_behind_it(tmp_path: Path) -> None:
    content = write_spectrum(tmp_path / "spectrum.tflite", WEIGHTS)
    weights = WEIGHTS.tobytes()

    def device(model: bytes, capture: bool) -> Probe:
        return HostProbe(model.replace(weights, (-WEIGHTS).tobytes()), "builtin", capture=capture)

    def hiding(model: bytes, capture: bool) -> Probe:
        if capture or len(Graph(model).outputs) > 2:
            raise ProbeRefused("it shows no tensors")
        return device(model, capture)

    assert weights in content
    for opens, method in ((device, "capture"), (hiding, "prefix")):
        with closing(KernelLocalizer(Graph(content), content, opens, on_host, 1 << 20)) as finder:
            found, twin = finder.find(GIVEN)
        assert (found.method, found.onset and found.onset.operator) == (method, LOGITS)
        assert REASON in found.note
        seen = {layer.layer.operator: layer for layer in found.layers}
        assert SPECTRUM not in seen
        assert len(twin) > len(Graph(content).inputs)
        if method == "capture":
            assert seen[MAGNITUDE].total is not None
            assert seen[MAGNITUDE].own is None
            assert seen[FLAT].own is not None
