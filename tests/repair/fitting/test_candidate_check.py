"""Whether rewritten files are whole, on real files that are and that are not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from litert_quantizer.quantizer import Quantizer

from edgeflare.core.seeds import SeedChoice, Seeds
from edgeflare.models.compressed_model import CompressedModel, open_compressed
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting import quantizer
from edgeflare.repair.fitting.quantizer import (
    candidate_fault,
    float_operators,
    weights_only,
)
from edgeflare_protos.kernel_sets import Kernels
from fitted_networks import judged
from tampering import COMPRESSED, EXAMPLE, ORIGINAL, constant_of, edited, with_constant
from tflite_weights import write_constant

Candidate = Callable[[bytes], Pair]


@cache
def seeds() -> Seeds:
    pair = load_pair(EXAMPLE)
    with closing(open_compressed(pair, "xnnpack")) as model:
        inputs = ModelInputs(pair.interface, model.signature.inputs, str(pair.compressed))
        return inputs.load(pair.seeds, SeedChoice(first=40))


@pytest.fixture
def candidate(tmp_path: Path) -> Candidate:
    def with_file(content: bytes) -> Pair:
        path = tmp_path / "candidate.tflite"
        path.write_bytes(content)
        return replace(load_pair(EXAMPLE), compressed=path)

    return with_file


@pytest.mark.slow
def test_whole_files_have_no_fault(candidate: Candidate) -> None:
    known = judged("example").network
    made = [weights_only(known), float_operators(known, [9])]
    files = [known.content, *(one.content for one in made)]
    assert [candidate_fault(candidate(content), seeds()) for content in files] == [None] * 3


def written_by_gptq() -> bytes:
    """What litert-quantizer writes, where its GPTQ meets static ranges behind a RESHAPE."""
    network = judged("example").network
    rule = float_operators(network, []).recipe[0]
    recipe = [dict(rule), {**rule, "operation": "FULLY_CONNECTED", "algorithm_key": "GPTQ"}]
    quantizer = Quantizer(bytearray(ORIGINAL.read_bytes()), recipe)
    rows = [{"keras_tensor": row[None]} for row in network.original_rows[:4]]
    ranges = quantizer.calibrate({"serving_default": rows}, num_threads=1)
    made = quantizer.quantize(ranges, enable_progress_bar=False, enable_progress_report=False)
    assert made.quantized_model is not None
    return bytes(made.quantized_model)


def test_a_tensor_with_bytes_of_another_type_is_named(candidate: Candidate) -> None:
    broken = candidate(written_by_gptq())
    with closing(open_compressed(broken, "xnnpack")) as model:
        assert "FULLY_CONNECTED" in model.operators  # so the runtime takes it
    said = candidate_fault(broken, seeds())
    assert said == (
        "tensor 4, 'arith.constant3', holds 122880 bytes, but int8 values of its shape take 30720"
    )


def test_a_file_that_is_no_model_is_refused_in_words(candidate: Candidate) -> None:
    assert candidate_fault(candidate(b"TFL3" * 9), seeds()) is not None
    cut = candidate_fault(candidate(COMPRESSED.read_bytes()[:2000]), seeds())
    assert cut is not None
    assert cut.startswith("candidate.tflite: ")


def test_a_file_that_a_kernel_set_does_not_load_is_refused_in_words(
    candidate: Candidate,
) -> None:
    def change(model: Any) -> None:
        bias = Graph(COMPRESSED.read_bytes()).operators[9].inputs[2]
        model.subgraphs[0].tensors[bias].shape = np.asarray([5], np.int32)
        model.subgraphs[0].tensors[bias].quantization = None
        write_constant(model, bias, np.zeros(5, np.int32))

    said = candidate_fault(candidate(edited(COMPRESSED.read_bytes(), change)), seeds())
    assert said is not None
    assert said.startswith("the XNNPACK delegate: ")


def test_answers_that_are_not_finite_are_a_fault(candidate: Candidate) -> None:
    content = ORIGINAL.read_bytes()
    spoilt = with_constant(content, constant_of(content, 9, 2), lambda bias: bias + np.nan)
    said = candidate_fault(candidate(spoilt), seeds())
    assert said == "the XNNPACK delegate: no answer on 32 of 32 seeds (invalid-output)"


@pytest.mark.slow
def test_kernel_sets_that_decide_differently_are_a_fault(
    candidate: Candidate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content, other = COMPRESSED.read_bytes(), tmp_path / "other.tflite"
    bias = np.roll(np.arange(10, dtype=np.int32) * 9000, 3)
    other.write_bytes(with_constant(content, constant_of(content, 9, 2), lambda _: bias))

    def opened(pair: Pair, kernels: Kernels) -> CompressedModel:
        """Kernels of the reference set that compute something else."""
        return open_tflite(other if kernels == "reference" else pair.compressed, kernels)

    monkeypatch.setattr(quantizer, "open_compressed", opened)
    said = candidate_fault(candidate(content), seeds())
    assert said is not None
    assert said.startswith("the reference kernels: other decisions than with the XNNPACK delegate")
    assert said.endswith(" of 32 seeds")
