"""Explanations on a terminal: in the measure that they have, and the file named at the end."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, get_args

import pytest
from rich.console import Console

from edgeflare.diagnose.compression_error import (
    NO_COUNTERPART,
    ONLY_TFLITE,
    UNJUDGED,
    CompressionError,
    CutOff,
    LayerCompressionError,
    LayerShare,
    QuantizedPart,
    coarse_layer,
)
from edgeflare.diagnose.constant_error import ConstantError
from edgeflare.diagnose.explanation import Explanation, explained_finding
from edgeflare.diagnose.explanation_terminal import print_explanations
from edgeflare.diagnose.layer_difference import (
    Difference,
    KernelOnset,
    LayerName,
    WrongTogether,
    layer_difference,
)
from edgeflare.diagnose.option_differences import OptionDifference
from edgeflare.diagnose.verdict import Name, Verdict, Which
from edgeflare.models.non_finite_values import NonFiniteOnset
from edgeflare.pages.page import Table
from edgeflare.report.html.explanation_view import explanation_view
from explained_findings import apart
from explained_findings import explanation as explanation_of


def explanation(
    error: CompressionError | None = None, verdict: Name = "compression", *totals: Difference
) -> Explanation:
    error = error or CompressionError()
    layers = tuple(
        layer_difference(LayerName(n, "CONV_2D", f"tensor_{n}"), total, None)
        for n, total in enumerate(totals)
    )
    grade = error.grade if verdict == "compression" else None
    found = Verdict(verdict, "so it is", grade)
    return explanation_of(found, KernelOnset("capture", layers=layers), error)


def shown(*explanations: Explanation) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=120, color_system=None)
    bars = Table.of_words(("bars here",), [("█",)])
    print_explanations(console, explanations, ("ant", "bee"), "explain.json", lambda _: bars)
    return file.getvalue().splitlines()


def words(*explanations: Explanation) -> str:
    return " ".join(" ".join(shown(*explanations)).split())


def printed(*totals: Difference) -> list[str]:
    return shown(explanation(None, "kernel", *totals))


def test_the_reason_why_layers_are_not_seen_is_printed_once_with_how_many_findings_it_is_of() -> (
    None
):
    unseen = explanation(CompressionError(note="tensor 'state' cannot be read"))
    notes = [line for line in shown(unseen, unseen) if line.startswith("note:")]
    assert notes == ["note: tensor 'state' cannot be read (2 findings)"]
    assert "note: tensor 'state' cannot be read" in shown(unseen)


@pytest.mark.parametrize(("own", "is_said"), [(0.0, True), (1.0, False)])
def test_a_layer_that_is_right_alone_is_wrong_together_with_others(
    own: float, is_said: bool
) -> None:
    equal, parted = apart(None, 0.0), apart(None, 1.0)
    split, add = LayerName(0, "SPLIT", "halves"), LayerName(1, "ADD", "sum")
    layers = (
        layer_difference(split, equal, equal),
        layer_difference(add, parted, apart(None, own)),
    )
    found = explanation_of(
        Verdict("kernel", "so it is", None), KernelOnset("exposure", add, layers=layers)
    )
    said = "ADD (operator 1) is right alone, and wrong together with others"
    assert (said in words(found)) == is_said
    together = WrongTogether("SPLIT then ADD", ("ADD reads two results of one operator",))
    named = replace(found, kernel_onset=replace(found.kernel_onset, together=together))
    said = "SPLIT then ADD (ADD reads two results of one operator) are right alone"
    assert (said in words(named)) == is_said


def row(lines: list[str], layer: str) -> list[str]:
    (line,) = [line for line in lines if line.split()[:2] == layer.split()]
    return line.split()[2:]


def test_units_where_there_are_some_and_what_has_none_is_called_real() -> None:
    lines = printed(apart(3, 0.1), apart(None, 0.0), apart(None, 0.25))
    assert any("largest differences in quantization units" in line for line in lines)
    assert row(lines, "0 CONV_2D") == ["3"]
    assert row(lines, "1 CONV_2D") == ["0"]
    assert row(lines, "2 CONV_2D") == ["0.25", "real"]
    assert lines[-1] == "Everything is in explain.json."
    assert any(line.startswith("bars here") for line in lines)


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
    padding = OptionDifference("padding", "SAME", "VALID")
    padded = lost(2, residual=3.0, options=(padding,), margin_share=-0.03)
    layers = (slight, zeroed, padded, lost(3))
    error = CompressionError(slight.layer, zeroed.layer, 0.8, layers)
    lines = shown(explanation(error, "compression", *[apart(0, 0.0)] * 4))
    assert " ".join(row(lines, "0 CONV_2D")).endswith("constant 0.502 > 0.501 0%")
    assert " ".join(row(lines, "1 CONV_2D")).startswith("← 0 7.5 1.0 new here 7.5 > 1, constant 98")
    assert row(lines, "1 CONV_2D")[-1] == "96%"
    assert " ".join(row(lines, "2 CONV_2D")).endswith("3 > 1, padding SAME, the original VALID -3%")
    assert row(lines, "3 CONV_2D")[-2:] == ["0.5", "1.0"]
    assert any("CONV_2D (operator 1)" in line for line in lines)
    assert not any("CONV_2D (operator 0)" in line for line in lines)
    hardly = CompressionError(slight.layer, None, 0.8, (slight,))
    lines = shown(explanation(hardly, "compression", apart(0, 0.0)))
    assert any("no single layer" in line for line in lines)
    assert "constant 0.502 > 0.501" in " ".join(row(lines, "0 CONV_2D"))


def cut_off(
    of: LayerCompressionError, why: str, part: QuantizedPart = "output"
) -> CompressionError:
    coarse = coarse_layer(of.layer, part, "saturated", why, 0.7)
    return CompressionError(layers=(of,), coarse=(coarse,))


def shared(operator: int, share: float) -> LayerShare:
    return LayerShare(operator, "CONV_2D", f"tensor_{operator}", share)


def test_what_compression_is_to_blame_for_is_said_once_for_all_findings() -> None:
    why = "its weights are cut off, 2 to 1"
    error = cut_off(lost(0, cut_off=CutOff(0.0, 0.25)), why, "weights")
    one = shown(explanation(error, "compression", apart(0, 0.0)))
    assert any("CONV_2D (operator 0): saturated" in line for line in one)
    assert row(one, "0 CONV_2D")[-2:] == ["25.0%", "above"]
    rounding = CompressionError(layers=(lost(1),), spread=(shared(1, 0.6),))
    said = words(*map(explanation, (rounding, error, error)))
    assert said.count(why) == 1
    assert said.index("Compression of 2 findings, coarse: CONV_2D (operator 0)") < said.index(
        "Compression of 1 finding, spread: ordinary rounding in many layers, which is what healthy"
        " files have; the largest shares have CONV_2D (operator 1) 60%."
    )


def test_ordinary_rounding_of_several_findings_is_said_once_with_the_layers_that_recur() -> None:
    errors = [
        CompressionError(layers=(lost(1),), spread=tuple(shared(at, of) for at, of in one))
        for one in (((0, 0.5), (1, 0.2)), ((1, 0.4),))
    ]
    assert (
        "Compression of 2 findings, spread: ordinary rounding in many layers, which is what healthy"
        " files have; among the 3 largest shares most often: CONV_2D (operator 1) in 2, CONV_2D"
        " (operator 0) in 1."
    ) in words(*map(explanation, errors))


def test_figures_alone_make_no_cause_of_their_own() -> None:
    errors = [cut_off(lost(0), f"{cut} is cut off") for cut in ("71%", "73%")]
    said = words(*map(explanation, errors))
    assert said.count("Compression of ") == 1
    assert "Compression of 2 findings" in said
    assert "71% is cut off" in said
    assert "(figures of seed 3)" in said


def test_constants_that_differ_in_all_layers_are_no_fault_of_one_layer() -> None:
    other = ConstantError(98.25, 0.5)
    layers = (*(lost(at, constants=other) for at in range(3)), lost(3))
    errors = [CompressionError(layers[0].layer, named.layer, 0.8, layers) for named in layers[:2]]
    said = words(*map(explanation, errors))
    assert said.count("Compression of ") == 1
    assert "the constants of all 3 layers that have any differ" in said
    kept = (*layers[:2], lost(2, constants=ConstantError(0.1, 0.5)))
    alone = CompressionError(kept[0].layer, kept[0].layer, 0.8, kept)
    assert (
        alone.said == "the error of CONV_2D (operator 0) is larger than its quantization explains"
    )


def test_of_several_findings_verdicts_are_counted_at_the_end() -> None:
    verdicts: tuple[Name, ...] = ("kernel", "compression", "several", "compression")
    several = [explanation(None, verdict) for verdict in verdicts]
    assert "4 findings: 2 compression, 1 kernel, 1 several." in shown(*several)
    assert " findings: " not in words(several[0])


def test_findings_of_which_the_same_is_said_share_a_row_and_a_sentence_with_a_next_step() -> None:
    found = [*[explanation(None, "kernel")] * 7, explanation(None, "unstable")]
    rows = [line.split() for line in shown(*found) if "so it is" in line]
    assert [row[0] for row in rows] == ["3", "3,"]
    said = words(*found)
    assert "3, 3, 3, 3, 3 and 2 more" in said
    assert said.count("device and twin compute the same file differently") == 1
    assert said.index("Kernels of 7 findings: ") < said.index("An unstable device of 1 finding: ")
    assert said.count(" Next: ") == 2


LAYER = lost(0)
CHANGED = tuple(lost(at, constants=ConstantError(98.25, 0.5)) for at in range(3))
FAULTY = CompressionError(most=LAYER.layer, layers=(LAYER,))
COARSE = cut_off(LAYER, "cut")
SPREAD = CompressionError(layers=(LAYER,))
OTHER = CompressionError(most=LAYER.layer, layers=CHANGED)
NOT_FINITE = CompressionError(
    layers=(LAYER,), seen=True, original=NonFiniteOnset("NaN", None, "", "")
)
STEPS: list[tuple[Name, Which | None, CompressionError, bool, str]] = [
    ("compression", "faulty", FAULTY, False, "convert that layer anew"),
    ("compression", "faulty", FAULTY, True, "convert that layer anew, or let `edgeflare repair"),
    ("compression", "faulty", OTHER, True, "give the original that the file was made from"),
    ("compression", "coarse", COARSE, False, "do so, and convert the model anew"),
    ("compression", "coarse", COARSE, True, "do so, or let `edgeflare repair RUN` fit ranges"),
    ("compression", "spread", SPREAD, False, "train with quantization, or keep more bits"),
    ("compression", "spread", SPREAD, True, "`edgeflare repair RUN` looks for changes"),
    ("compression", None, NOT_FINITE, True, "mend the original, which has NaN or infinity itself"),
    ("compression", None, CompressionError(note=ONLY_TFLITE), True, "compare with a .tflite"),
    ("compression", None, CompressionError(note=NO_COUNTERPART), True, "give the original that"),
    ("compression", None, CompressionError(note="layers are not seen: 2 inputs"), True, ""),
    ("compression", None, CompressionError(note="the twin's layers cannot be seen"), True, ""),
    ("compression", None, replace(SPREAD, judged=False, note=UNJUDGED), True, ""),
    ("kernel", "delegate", SPREAD, True, "`edgeflare conform` tells which operators"),
    ("kernel", "thread-count", SPREAD, True, "run with the number of threads that decides"),
    ("kernel", "accelerator-precision", SPREAD, True, "let the accelerator compute in float32"),
    ("kernel", "cpu-fallback", SPREAD, True, "replace the operators that the accelerator does not"),
    ("kernel", "runtime-version", SPREAD, True, "update the device's runtime"),
    ("several", None, SPREAD, True, "`edgeflare search --find kernel` looks for"),
    ("host-suspect", None, SPREAD, True, "search again with other kernels for the twin"),
    ("unstable", None, SPREAD, True, "`edgeflare devices check NAME`"),
    ("input-suspect", None, SPREAD, True, "hold `[preprocess]` of pair.toml against"),
    ("other-order", None, SPREAD, True, "convert the file with the original's order"),
    ("input-stage", None, SPREAD, True, "make the app prepare inputs as"),
    ("output-stage", None, SPREAD, True, "make the app read outputs as the pair does"),
    ("both-stages", None, SPREAD, True, "make the app prepare inputs and read outputs"),
    ("none", None, SPREAD, True, "`edgeflare replay RUN` tells which findings are mended"),
]


@pytest.mark.parametrize(("name", "which", "error", "repairable", "step"), STEPS)
def test_terminal_and_page_say_the_same_to_do_next(
    name: Name, which: Which | None, error: CompressionError, repairable: bool, step: str
) -> None:
    one = explanation(error, name)
    if name == "compression":
        assert error.grade == which
    one = replace(one, verdict=replace(one.verdict, which=which), repairable=repairable)
    on_page = explanation_view(explained_finding(one), ("ant", "bee")).next_step
    assert on_page.startswith(step)
    assert bool(on_page) == bool(step)
    said = words(one)
    assert said.count(" Next: ") == bool(step)
    assert not step or f". Next: {on_page}. " in said
    assert ("edgeflare repair" in on_page) == ("edgeflare repair" in step)


def test_what_the_world_knows_of_the_operator_is_told_with_the_next_step() -> None:
    one = replace(explanation(SPREAD, "kernel"), issue="PAD there is as in LiteRT#9272")
    assert words(one).count("which operators of the device are wrong") == 1
    assert explained_finding(one).next_step.endswith("; PAD there is as in LiteRT#9272")


def test_each_verdict_has_a_next_step_in_the_table() -> None:
    assert {name for name, *_ in STEPS} == set(get_args(Name))


def test_findings_that_differ_only_in_their_figures_share_a_row() -> None:
    one = explanation(FAULTY)
    ones = [
        replace(one, verdict=replace(one.verdict, why=f"the original gives {who} apart"))
        for who in ("ant, 0.1234", "bee, 0.1234", "ant, 0.4321")
    ]
    elsewhere = replace(ones[0], compression_error=replace(FAULTY, most=lost(1).layer))
    said = words(*ones, elsewhere)
    assert said.count("compression: faulty") == 2
    assert "0.4321" not in said
    assert "of 3" in said


def test_a_file_that_differs_on_most_seeds_is_not_called_healthy() -> None:
    assert "which is what healthy files have" in replace(SPREAD, apart_on_seeds=0.5).said
    said = replace(SPREAD, apart_on_seeds=0.8).said
    assert "healthy" not in said
    assert "twin and original differ on 80% of the seeds" in said


def test_an_unknown_margin_is_said_where_compression_may_be_to_blame() -> None:
    error = replace(SPREAD, judged=False, note=UNJUDGED)
    known: dict[Name, int] = {"compression": 1, "several": 1, "kernel": 0}
    for verdict, times in known.items():
        assert shown(explanation(error, verdict)).count(f"note: {UNJUDGED}") == times
    assert "not judged" in words(explanation(error))
