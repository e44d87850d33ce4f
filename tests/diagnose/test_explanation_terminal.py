"""Explanations on a terminal: in the measure that they have, and the file named at the end."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from documents import finding
from edgeflare.core.arm import Arm
from edgeflare.diagnose.compression_error import CompressionError, LayerCompressionError
from edgeflare.diagnose.constant_error import ConstantError
from edgeflare.diagnose.evidence import Evidence
from edgeflare.diagnose.execution_modes import ExecutionMode, Vote
from edgeflare.diagnose.explain_findings import Explanation
from edgeflare.diagnose.explanation_terminal import print_explanations
from edgeflare.diagnose.kernel_localization import KernelOnset
from edgeflare.diagnose.layer_difference import LayerDifference, LayerName
from edgeflare.diagnose.tensor_difference import Difference
from edgeflare.diagnose.verdict import Verdict


def apart(units: float | None, real: float) -> Difference:
    return Difference(units, real, 1.0, 30.0, real / 2, parted=bool(real))


def printed(
    *totals: Difference, compression_error: CompressionError | None = None, verdict: str = "kernel"
) -> list[str]:
    layers = tuple(
        LayerDifference(LayerName(n, "CONV_2D", f"tensor_{n}"), total, None)
        for n, total in enumerate(totals)
    )
    return shown(explanation(layers, compression_error or CompressionError(), verdict))


def explanation(
    layers: tuple[LayerDifference, ...], compression_error: CompressionError, verdict: str
) -> Explanation:
    return Explanation(
        finding=finding(seed_id=3, cause="kernel"),
        device="laboratory",
        verdict=Verdict(verdict, "so it is"),  # type: ignore[arg-type]
        evidence=Evidence(
            original=None,
            twin=Vote(ExecutionMode(Arm.TWIN, "xnnpack"), (0,), (1,)),
            host=(),
            device=Vote(ExecutionMode(Arm.DEVICE, "builtin"), (1, 1, 1), (2, 2, 2)),
        ),
        kernel_onset=KernelOnset("capture", layers=layers),
        compression_error=compression_error,
        device_queries=3,
    )


def shown(*explanations: Explanation) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=120, color_system=None)
    print_explanations(
        console, explanations, ("ant", "bee"), "explain.json", lambda _: Text("bars here")
    )
    return file.getvalue().splitlines()


def row(lines: list[str], layer: str) -> list[str]:
    (line,) = [line for line in lines if line.split()[:2] == layer.split()]
    return line.split()[2:]


def test_units_where_there_are_some_and_what_has_none_is_called_real() -> None:
    lines = printed(apart(3, 0.1), apart(None, 0.0), apart(None, 0.25))
    assert any("largest differences in quantization units" in line for line in lines)
    assert row(lines, "0 CONV_2D") == ["3"]
    assert row(lines, "1 CONV_2D") == ["0"]
    assert row(lines, "2 CONV_2D") == ["0.25", "real"]


@pytest.mark.parametrize("real", [0.0, 0.5])
def test_a_network_without_quantized_tensors_is_told_in_real_values(real: float) -> None:
    lines = printed(apart(None, real))
    assert any("largest differences in real values" in line for line in lines)
    assert not any("in quantization units" in line for line in lines)
    assert row(lines, "0 CONV_2D") == [f"{real:.2g}"]


def lost(operator: int, **fields: Any) -> LayerCompressionError:
    known = {"residual": 0.5, "explained": 1.0, "constants": None, "options": ()} | fields
    layer = LayerName(operator, "CONV_2D", f"tensor_{operator}")
    return LayerCompressionError(layer, "name", None, **known)


def test_the_figures_that_put_a_layer_beyond_are_shown_and_its_share_of_the_margin() -> None:
    slight = lost(0, constants=ConstantError(0.50157, 0.5012), margin_share=0.004)
    zeroed = lost(1, constants=ConstantError(98.25, 0.5), residual=7.5, margin_share=0.96)
    strided = lost(2, options=("padding",), margin_share=-0.03)
    layers = (slight, zeroed, strided, lost(3))
    error = CompressionError(slight.layer, zeroed.layer, 0.8, layers)
    lines = printed(*[apart(0, 0.0)] * 4, compression_error=error, verdict="compression")
    assert " ".join(row(lines, "0 CONV_2D")).endswith("constant 0.502 > 0.501 0%")
    assert " ".join(row(lines, "1 CONV_2D")).startswith("0 7.5 1.0 new here 7.5 > 1, constant 98")
    assert row(lines, "1 CONV_2D")[-1] == "96%"
    assert row(lines, "2 CONV_2D")[-2:] == ["padding", "-3%"]
    assert row(lines, "3 CONV_2D")[-2:] == ["0.5", "1.0"]
    assert any("CONV_2D (operator 1)" in line for line in lines)
    assert not any("CONV_2D (operator 0)" in line for line in lines)


def test_layers_that_took_hardly_any_of_the_margin_are_shown_and_not_named() -> None:
    slight = lost(0, constants=ConstantError(0.6, 0.5), margin_share=0.004)
    lines = printed(
        apart(0, 0.0),
        compression_error=CompressionError(slight.layer, None, 0.8, (slight,)),
        verdict="compression",
    )
    assert any("no single layer" in line for line in lines)
    assert "constant 0.6 > 0.5" in " ".join(row(lines, "0 CONV_2D"))


def test_where_everything_is_comes_last() -> None:
    lines = printed(apart(3, 0.1))
    assert lines[-1] == "Everything is in explain.json."
    assert lines[-2] == "bars here"


def test_of_several_findings_verdicts_are_counted_at_the_end() -> None:
    verdicts = ("kernel", "compression", "several", "compression")
    several = [explanation((), CompressionError(), verdict) for verdict in verdicts]
    lines = shown(*several)
    assert lines[-2] == "4 findings: 2 compression, 1 kernel, 1 several."
    assert not any(" findings: " in line for line in shown(several[0]))
