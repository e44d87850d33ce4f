"""The table of a matrix in words: who stands alone, who refuses, and what ties are."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from edgeflare.core.goal import Find, Goal
from edgeflare.matrix.agreement import InputAgreement
from edgeflare.matrix.matrix import KernelSetFigures, Matrix
from edgeflare.matrix.matrix_table import print_matrix, sentences, to_markdown
from edgeflare.matrix.stored_inputs import StoredTrigger

TOLD = {"runtime": "litert", "runtime_version": "2.3", "delegated_nodes": 0, "total_nodes": 9}
REFUSAL = "the GPU accelerator takes 3 of 9 nodes, and not SHAPE: add --fold-shapes"


def row(kernels: str, deviating: int, alone: int = 0) -> KernelSetFigures:
    device = f"emulated-{kernels}"
    return KernelSetFigures(kernels, device, "", TOLD, 4, 0, deviating, deviating, alone)


def matrix(*, ties: bool = False) -> Matrix:
    refusing = KernelSetFigures("gpu", "emulated-gpu", REFUSAL)
    rows = (row("xnnpack", 0), row("builtin", 1), row("micro", 2, 1), refusing)
    triggers = tuple(
        StoredTrigger("micro", f"findings/{at}.png", at, "00", None)  # type: ignore[arg-type]
        for at in (0, 1)
    )
    apart = (("xnnpack", "micro"), ("builtin", "micro"))
    agreement = (
        InputAgreement(("micro",), "micro", apart),
        InputAgreement(("builtin", "micro"), None, (("xnnpack", "micro"),)),
    )
    return Matrix("search", "a|pair", Goal(Find.KERNEL, ties), rows, triggers, agreement)


def test_it_says_who_stands_alone_who_agrees_and_who_refuses() -> None:
    assert sentences(matrix()) == [
        "micro stands alone on 1 of 2 inputs: all others decide alike there",
        "xnnpack and builtin decide alike on all of 2 inputs",
        f"gpu refused: {REFUSAL}",
    ]


@pytest.mark.parametrize("ties", [False, True])
def test_on_a_terminal_a_refusal_is_one_line_and_ties_are_told(ties: bool) -> None:
    console = Console(file=io.StringIO(), width=80)
    print_matrix(console, matrix(ties=ties))
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert f"• gpu refused: {REFUSAL}\n" in said
    assert ("ties are no deviations" in " ".join(said.split())) == (not ties)


def test_markdown_has_what_strangers_named_escaped() -> None:
    said = to_markdown(matrix())
    assert r"# a\|pair" in said
    assert "| litert 2.3 | micro | 0/4 | 2/4 | 2/2 | 1 |" in said
