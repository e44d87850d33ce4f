"""Explanations on a terminal: in the measure that they have, and the file named at the end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from edgeflare.diagnose.difference import Difference
from edgeflare.diagnose.evidence import Evidence, Vote, Way
from edgeflare.diagnose.explaining import Explanation
from edgeflare.diagnose.layer import Layer, LayerDifference
from edgeflare.diagnose.parting import Parting
from edgeflare.diagnose.quantization import Loss
from edgeflare.diagnose.terminal import print_explanations
from edgeflare.diagnose.verdict import Verdict
from edgeflare.search.outcome import Arm


def apart(units: float | None, real: float) -> Difference:
    return Difference(units, real, 1.0, 30.0, real / 2, parted=bool(real))


def printed(*totals: Difference) -> list[str]:
    layers = tuple(
        LayerDifference(Layer(n, "CONV_2D", f"tensor_{n}"), total, None)
        for n, total in enumerate(totals)
    )
    one = Explanation(
        finding={"seed_id": 3, "cause": "kernel", "kind": "deviation"},
        device="laboratory",
        verdict=Verdict("kernel", "so it is", "delegate"),
        evidence=Evidence(
            original=None,
            twin=Vote(Way(Arm.TWIN, "xnnpack"), (0,), (1,)),
            host=(),
            device=Vote(Way(Arm.DEVICE, "builtin"), (1, 1, 1), (2, 2, 2)),
        ),
        parting=Parting("capture", layers=layers),
        loss=Loss(),
        device_queries=3,
    )
    file = io.StringIO()
    console = Console(file=file, width=120, color_system=None)
    print_explanations(console, [one], ("ant", "bee"), "explain.json", lambda _: Text("bars here"))
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


def test_where_everything_is_comes_last() -> None:
    lines = printed(apart(3, 0.1))
    assert lines[-1] == "Everything is in explain.json."
    assert lines[-2] == "bars here"
