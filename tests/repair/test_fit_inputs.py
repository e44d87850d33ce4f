"""What repairs of any task and domain are fitted with and judged by, and what comes of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from brief_commands import brief_repairs
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm
from edgeflare.core.tensor import quantize
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fit_inputs import further_inputs, network_to_fit
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import network_inputs
from edgeflare.repair.judging.judgement_inputs import (
    MIXED,
    TIGHT,
    WIDE,
    known_labels,
    line_inputs,
    split_seeds,
)
from edgeflare.repair.repair_request import DEFAULT_REQUEST
from edgeflare.repair.repair_requirements import original_file
from edgeflare.repair.repair_run import RepairOutcome, repair_pair
from edgeflare.run.plan import Plan
from onnx_models import write_lenet_onnx
from segmentation_pairs import write_segmentation_pair
from small_pairs import write_text_pair, write_tokens_pair, write_two_inputs_pair
from state_pairs import write_state_pair, write_variable_pair

DEVICE = "emulated-builtin"
EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


@contextmanager
def opened(folder: Path) -> Iterator[OpenedPair]:
    plan = Plan("boundary", Goal(), (DEVICE,))
    with ExitStack() as stack:
        yield open_pair(load_pair(folder), plan, find_profiles([DEVICE]), stack)


@pytest.mark.slow
def test_an_onnx_original_is_fitted_to_as_the_file_that_it_was_made_from(tmp_path: Path) -> None:
    for name in ("compressed.tflite", "seeds.npz", "pair.toml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    description = (tmp_path / "pair.toml").read_text()
    (tmp_path / "pair.toml").write_text(description.replace("original.tflite", "original.onnx"))
    write_lenet_onnx(tmp_path / "original.onnx", (EXAMPLE / "original.tflite").read_bytes())
    networks = []
    for folder in (EXAMPLE, tmp_path):
        with opened(folder) as known:
            original = original_file(known.pair, None, DEFAULT_REQUEST)
            assert original is not None
            some, ids = known.seeds.inputs[:20], [*known.seeds.seed_ids][:20]
            networks.append(network_to_fit(known, original, some, ids, np.random.default_rng(0)))
    real, rebuilt = networks
    assert np.array_equal(rebuilt.original_rows, real.original_rows)
    assert fitted_ranges(rebuilt) == pytest.approx(fitted_ranges(real), rel=1e-4)


def fitted_ranges(network: QuantizedNetwork) -> NDArray[np.float64]:
    graph = Graph(fit_ranges(network, lambda _done, _whole: None))
    return np.array([scale for tensor in graph.tensors for scale in tensor.scales])


@pytest.mark.slow
def test_a_step_of_a_clip_has_the_state_that_the_original_has_there(tmp_path: Path) -> None:
    """It adds up x, so that the state before a frame is the sum of those before it."""
    with opened(write_state_pair(tmp_path / "pair")) as known:
        seeds = known.seeds.inputs
        original = Path(str(known.pair.original)).read_bytes()
        rng = np.random.default_rng(0)
        network = network_to_fit(known, original, seeds, [*known.seeds.seed_ids], rng)
    real = named(network.original_graph, network.original_rows)
    before = np.cumsum(seeds, axis=1) - seeds
    assert len(real["x"]) == 4 * len(seeds)
    for x, state in zip(real["x"], real["state"], strict=True):
        (there,) = np.argwhere((seeds.reshape(-1, 3) == x.ravel()).all(axis=1))
        assert state.ravel() == pytest.approx(before.reshape(-1, 3)[there[0]], abs=1e-5)
    rounded = named(network.graph, network.rows)
    given = {one.name: one.as_interface for one in network.graph.tensors}
    for name, values in real.items():
        assert (rounded[name] == quantize(values.astype(np.float32), given[name])).all()


def named(graph: Graph, rows: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
    values = network_inputs(graph, rows)
    return {graph.tensors[tensor].name: one for tensor, one in values.items()}


def test_a_state_in_variables_is_refused_before_models_are_opened(tmp_path: Path) -> None:
    pair = load_pair(write_variable_pair(tmp_path / "pair", resource=False, frames=4))
    with pytest.raises(UserError, match="keeps a state in variables"):
        original_file(pair, None, DEFAULT_REQUEST)


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_text_pair, write_tokens_pair])
def test_decisions_have_borders_on_lines_in_the_domains_space(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    """Neighbours on both sides of one are decided otherwise, and ids stay those of one end."""
    with opened(write(tmp_path / "pair")) as known:
        every, space = known.seeds.inputs, known.pair.interface.domain.space
        rows = np.arange(len(every))
        sets = line_inputs(known, known_labels(known), rows, 20, np.random.default_rng(0))
        near, of = sets[TIGHT]
        answers = [
            one.outcome[Arm.ORIGINAL]
            for one in known.evaluate(list(near), of.tolist(), (Arm.ORIGINAL,))
        ]
    assert set(sets) == {TIGHT, WIDE}
    assert len(near) >= 2
    assert near.dtype == every.dtype
    pairs = list(zip(answers[::2], answers[1::2], strict=True))
    assert all(one.differs(other) for one, other in pairs)
    assert all(space.contains(one) for one in near)
    if not space.ordered:
        ends = every[of[::2]], every[of[1::2]]
        assert ((near[::2] == ends[0]) | (near[::2] == ends[1])).all()


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_state_pair, write_segmentation_pair])
def test_what_differs_by_degrees_has_mixtures_of_two_seeds(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    """One of each two, in no order."""
    with opened(write(tmp_path / "pair")) as known:
        every = known.seeds.inputs
        rows = np.arange(1, len(every))
        sets = line_inputs(known, known_labels(known), rows, 10, np.random.default_rng(0))
    assert list(sets) == [MIXED]
    mixed, of = sets[MIXED]
    assert set(of.tolist()) <= set(rows.tolist())
    assert len({one.tobytes() for one in mixed}) == len(mixed) == 10
    assert mixed.min() >= every[1:].min()
    assert mixed.max() <= every[1:].max()


def test_further_inputs_are_of_the_seeds_to_fit_with_and_the_same_in_each_run() -> None:
    with opened(EXAMPLE) as known:
        labels = known_labels(known)
        split = split_seeds(labels, np.random.default_rng(0))
        original = (EXAMPLE / "original.tflite").read_bytes()
        drawn = [further_inputs(known, original, labels, split, seed) for seed in (0, 0, 1)]
        (rows, real), (again, _), (others, _) = (further(60) for further in drawn if further)
        seeds = known.panel.rows(Arm.TWIN, known.seeds.inputs[split.fit], split.fit.tolist())
        assert (rows == again).all()
        assert (rows != others).any()
        assert len(rows) == len(real) == 60
        assert sum(any((row == seed).all() for seed in seeds) for row in rows) >= 10


def repaired(folder: Path, out: Path) -> RepairOutcome:
    with brief_repairs():
        return repair_pair(
            load_pair(folder),
            None,
            find_profiles([DEVICE]),
            structs.replace(DEFAULT_REQUEST, max_size="none", max_latency="none"),
            out,
            lambda _step, _done, _total: None,
        )


@pytest.mark.slow
def test_a_classifier_of_two_arrays_is_mended(tmp_path: Path) -> None:
    """Of the two the second is no part of any line: it is that of the seed."""
    folder = write_two_inputs_pair(tmp_path / "pair")
    rng = np.random.default_rng(6)
    motion = rng.uniform(-3.0, 3.0, (60, 6)).astype(np.float32)
    place = rng.uniform(-1.0, 1.0, (60, 4)).astype(np.float32)
    np.savez(folder / "seeds.npz", motion=motion, place=place)
    found = repaired(folder, tmp_path / "out").document
    assert found.written
    assert found.judged is not None
    counts = [(one.before.deviating, one.after.deviating) for one in found.judged.scored]
    before, after = map(sum, zip(*counts, strict=True))
    assert after < before / 2
    why = {one.name: one.set_aside for one in found.candidates}
    assert "no int8 weights" in str(why["rounding"])


@pytest.mark.slow
def test_values_of_clips_are_judged_by_their_distance(tmp_path: Path) -> None:
    """A model without weights has nothing to fit but ranges; what cannot be made is named."""
    folder = write_state_pair(tmp_path / "pair")
    rng = np.random.default_rng(5)
    x, offset = (rng.uniform(-0.5, 0.5, (60, 4, 1, 3)).astype(np.float32) for _ in range(2))
    np.savez(folder / "seeds.npz", x=x, offset=offset)
    found = repaired(folder, tmp_path / "out").document
    assert found.measured_as == "distance"
    judged = {one.name: one.sets for one in found.candidates if one.sets is not None}
    assert judged
    for one in judged.values():
        assert one.tight is None
        assert one.mixed is not None
        assert one.mixed.before.measured is not None
        assert one.mixed.before.deviating > 0
    why = {one.name: one.set_aside for one in found.candidates}
    assert "no float32 weights" in str(why["rounding+weights-only"])
