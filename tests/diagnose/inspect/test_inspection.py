"""Inspections of synthetic networks: what is planted is named, what is healthy is diffuse."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.cli.console import Console
from edgeflare.cli.inspect import print_inspection
from edgeflare.diagnose.inspect import inspect_document as module
from edgeflare.diagnose.inspect import inspection_figures
from edgeflare.diagnose.inspect.behaviour_block import (
    CHOOSING,
    HELD_OUT,
    BehaviourBlock,
    InspectedUnit,
    UnitLayer,
)
from edgeflare.diagnose.inspect.behaviour_scores import is_beyond, level_of
from edgeflare.diagnose.inspect.error_shares import error_shares, first_to_blame, is_to_blame
from edgeflare.diagnose.inspect.inspect_document import (
    InspectDocument,
    InspectionResult,
    inspect_bytes,
    inspect_document,
    load_inspection,
)
from edgeflare.diagnose.inspect.inspection import Inspection, group_permutations
from edgeflare.diagnose.inspect.inspection_inputs import (
    AT_ONCE,
    LEAST_LINES,
    MOST_CHOOSING,
    STRATA,
    Found,
    InspectedInputs,
    SeedHalves,
    disjoint_lines,
    inspected_inputs,
    seed_halves,
)
from edgeflare.errors import UserError
from edgeflare.hypothesis import UnitHypothesis
from inspected_units import HYPOTHESES, blocks, inputs, network

NETWORK = network(*([16] * 4 + [32] * 4))
RNG_SEED = 7


def inspected(
    block: BehaviourBlock,
    layers: Sequence[UnitLayer] = NETWORK,
    *,
    sizes: Sequence[int] = (64,),
    precision: float = 0.05,
) -> InspectionResult:
    rng = np.random.default_rng(RNG_SEED)
    inspection = Inspection(layers, HYPOTHESES, precision, rng, permutations=200)
    for part in blocks(block, sizes):
        if not inspection.add(part):
            break
    return inspection.result()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("part", [0.36, 0.43])
def test_a_fault_is_named_with_its_layer_and_share(seed: int, part: float) -> None:
    rng = np.random.default_rng(seed)
    at = (int(rng.integers(8)), int(rng.integers(16)))
    verdict = inspected(inputs(NETWORK, 1500, rng, fault=(*at, part))).verdict
    assert (verdict.name, verdict.unit) == ("channel", InspectedUnit(*at))
    assert verdict.share is not None
    assert verdict.share.low - 0.05 <= part <= verdict.share.high + 0.05
    assert verdict.sentence == (
        f"channel {at[1]} of CONV_2D (operator {2 * at[0]}) has {verdict.share.share:.0%} of the"
        " margin's error"
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("unrelated", [False, True])
def test_healthy_networks_are_diffuse_and_unrelated_errors_nothing(
    seed: int, unrelated: bool
) -> None:
    made = inputs(NETWORK, 800, np.random.default_rng(seed), unrelated=unrelated)
    found = inspected(made)
    assert found.verdict.name == ("nothing" if unrelated else "diffuse")
    assert found.verdict.sentence.startswith(found.verdict.name)
    foretold = {one.hypothesis for one in found.best if one.beyond}
    assert foretold <= (set() if unrelated else {"deviates"})


@pytest.mark.slow
def test_half_of_the_inputs_give_the_same_verdict() -> None:
    made = inputs(NETWORK, 1600, np.random.default_rng(5), fault=(3, 4, 0.4))
    early, late = inspected(made), inspected(made, precision=0.001)
    assert (early.ended, late.ended) == ("precise", "inputs")
    assert early.inputs <= late.inputs / 2 == 800
    assert early.verdict.unit == late.verdict.unit == InspectedUnit(3, 4)
    assert early.verdict.name == late.verdict.name == "channel"


@pytest.mark.slow
@pytest.mark.parametrize("precision", [0.05, 0.001])
def test_blocks_may_be_of_any_size(precision: float) -> None:
    made = inputs(NETWORK, 450, np.random.default_rng(2), behaviours=("error", "error-gradient"))
    whole = inspected(made, sizes=(450,), precision=precision)
    assert whole == inspected(made, sizes=(1, 7, 130), precision=precision)
    assert whole.ended == ("precise" if precision == 0.05 else "inputs")


@pytest.mark.slow
def test_without_gradients_there_is_no_verdict_and_aucs_are_made_precise() -> None:
    made = inputs(NETWORK, 700, np.random.default_rng(2), behaviours=("error",))
    found = inspected(made, precision=0.1)
    assert found.verdict.name == "none"
    assert found.ended == "precise"
    assert set(found.top_units) == {"error"}
    assert {one.share for one in found.layer_scores} == {None}


@pytest.mark.slow
def test_a_group_lies_in_one_half_and_no_more_is_kept_than_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inspection_figures, "MOST_BYTES_KEPT", 4 * 192 * 300)
    made = inputs(NETWORK, 500, np.random.default_rng(3))
    found = inspected(made, precision=0.001)
    assert (found.ended, found.inputs, sum(found.groups)) == ("full", 300, 150)
    assert found.halves == (150, 150)


@pytest.mark.slow
def test_built_in_constants_are_left_out_and_the_users_refused() -> None:
    made = inputs(NETWORK, 100, np.random.default_rng(4))
    said = made.hypotheses.copy()
    said[:, 2] = 3.0
    found = inspected(replace(made, hypotheses=said))
    assert found.constant == ("brightness",)
    assert "brightness" not in found.hypotheses
    said[:, 5] = 1.0
    with pytest.raises(UserError, match="'mine' is constant over 50 inputs"):
        inspected(replace(made, hypotheses=said))


@pytest.mark.slow
def test_a_rare_hypothesis_of_the_user_is_waited_for() -> None:
    made = inputs(NETWORK, 1600, np.random.default_rng(5), fault=(3, 4, 0.4))
    said = made.hypotheses.copy()
    said[:, 5] = np.arange(1600) >= 1000
    found = inspected(replace(made, hypotheses=said))
    assert found.ended == "precise"
    assert 1000 < found.inputs < 1600
    assert "mine" in found.hypotheses


def test_what_is_the_level_itself_is_not_beyond_it() -> None:
    extremes = np.full(1000, 0.3)
    assert not is_beyond(0.3, level_of(extremes))
    assert not is_beyond(0.1 + 0.2, level_of(extremes))
    assert is_beyond(0.301, level_of(extremes))


def test_too_few_inputs_and_a_wrong_precision_are_one_line() -> None:
    made = inputs(NETWORK, 78, np.random.default_rng(4))
    with pytest.raises(UserError, match=r"39 groups of inputs are too few .* in 40 groups or more"):
        inspected(made)
    with pytest.raises(UserError, match="0 groups"):
        Inspection(NETWORK, HYPOTHESES, 0.1, np.random.default_rng(0)).result()
    for precision in (0.0, 1.0, float("nan")):
        with pytest.raises(UserError, match="give a number above 0 and below 1"):
            Inspection(NETWORK, HYPOTHESES, precision, np.random.default_rng(0))


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    made = inputs(network(2), 100, np.random.default_rng(4))
    with pytest.raises(UserError, match=r"pip install 'edgeflare\[whitebox\]'"):
        inspected(made, network(2))


def test_blocks_of_other_shapes_or_without_numbers_are_refused() -> None:
    made = inputs(NETWORK, 10, np.random.default_rng(4))
    inspection = Inspection(NETWORK, HYPOTHESES, 0.1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no behaviour of 192 units"):
        inspection.add(replace(made, values={}))
    with pytest.raises(ValueError, match="not finite"):
        inspection.add(replace(made, margin_errors=np.full(10, np.nan)))
    with pytest.raises(ValueError, match="has the behaviours"):
        inspection.add(replace(made, values={"error": made.values["error-gradient"]}))


BLAMED = network(16, 16, 16)


def shares(**tops: float) -> np.ndarray:
    """Return shares of 48 units, those of u0 to u47 as said and others small."""
    made = np.full(48, 0.04)
    for unit, share in tops.items():
        made[int(unit[1:])] = share
    return made


@given(st.integers(0, 2**32 - 1))
def test_shares_of_contributions_that_add_up_to_the_error_add_up_to_one(seed: int) -> None:
    contributions = np.random.default_rng(seed).normal(size=(50, 7)) + 1000.0
    assert error_shares(contributions, contributions.sum(axis=1)).sum() == pytest.approx(1.0)


def test_what_another_unit_cancels_and_what_is_small_has_no_share() -> None:
    """Narrow layers need a larger one to be blamed."""
    rng = np.random.default_rng(0)
    errors, cancelled = rng.normal(size=(2, 5000))
    found = error_shares(np.column_stack([cancelled + errors, -cancelled, errors / 100]), errors)
    assert found == pytest.approx([1.0, 0.0, 0.01], abs=0.05)
    assert error_shares(errors[:, None], np.zeros(5000)).tolist() == [0.0]
    (two, six, wide) = network(2, 6, 1000)
    assert [is_to_blame(0.3, layer) for layer in (two, six, wide)] == [False, False, True]
    assert not is_to_blame(1.0, network(1)[0])
    assert is_to_blame(0.35, six)


@pytest.mark.parametrize(
    ("made", "unit"),
    [
        (shares(u18=0.4), 18),
        (shares(u18=0.36, u34=0.42), 18),  # a shortcut passes the channel on
        (shares(u2=0.26, u34=0.6), 34),  # a small fault before a large one
        (shares(u5=0.08, u40=0.09), 40),  # none is to blame
    ],
)
def test_blame_is_of_the_earliest_that_is_near_the_greatest(made: np.ndarray, unit: int) -> None:
    assert first_to_blame(made, BLAMED) == unit


LAYERS = network(16, 32)


def found(*behaviours: str) -> InspectionResult:
    inspection = Inspection(LAYERS, HYPOTHESES, 0.05, np.random.default_rng(0), permutations=50)
    rng = np.random.default_rng(1)
    inspection.add(inputs(LAYERS, 600, rng, fault=(0, 3, 0.5), behaviours=behaviours))
    return inspection.result()


def checked(result: InspectionResult, folder: Path) -> InspectDocument:
    document = inspect_document(result)
    schema = Path(module.__file__).with_name("inspect.schema.json")
    path = folder / module.INSPECTION
    path.write_bytes(inspect_bytes(document))
    jsonschema.validate(json.loads(path.read_bytes()), json.loads(schema.read_bytes()))
    assert load_inspection(path) == document
    return document


@pytest.mark.slow
def test_a_document_has_all_that_was_found(tmp_path: Path) -> None:
    document = checked(found("error", "error-gradient"), tmp_path)
    assert document.verdict.name == "channel"
    assert document.verdict.unit == InspectedUnit(0, 3)
    assert len(document.best) == 2 * 5 * 6
    assert [layer.channels for layer in document.layers] == [16, 32]
    assert {name: len(units) for name, units in document.top_units.items()} == {
        "error": 20, "error-gradient": 20, "share": 20,
    }  # fmt: skip


@pytest.mark.slow
def test_one_without_gradients_is_valid_too(tmp_path: Path) -> None:
    assert checked(found("error"), tmp_path).verdict.unit is None


@pytest.mark.slow
def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "inspect.json"
    path.write_text(json.dumps({"schema": "edgeflare.inspect/v1"}))
    with pytest.raises(UserError, match=r"inspect\.json is "):
        load_inspection(path)


@pytest.mark.slow
def test_the_terminal_begins_with_the_verdict_and_says_nothing_of_what_is_below() -> None:
    result, file = found("error", "error-gradient"), io.StringIO()
    print_inspection(Console(file=file, width=150), result, "inspect.json")
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("channel 3 of CONV_2D (operator 0) has ")
    (contrast, again) = [line for line in lines if line.lstrip().startswith("contrast")]
    assert contrast.split()[1:] == again.split()[1:] == ["nothing"] * 5
    assert any(line.lstrip().startswith("3 ") and "%" in line for line in lines)
    assert lines[-1] == "Everything is in inspect.json."


WEIGHTS = np.random.default_rng(0).normal(size=(6, 3))
WEIGHTS -= WEIGHTS.mean(axis=0)  # each class is the largest somewhere
SEEDS = np.random.default_rng(1).integers(0, 256, (300, 2, 3, 1), np.uint8)
COUNT = 200


def scores(inputs: NDArray[np.generic]) -> NDArray[np.float64]:
    assert len(inputs) <= AT_ONCE
    return np.asarray(inputs.reshape(len(inputs), -1).astype(np.float64) @ WEIGHTS)


def labels(inputs: NDArray[np.generic]) -> NDArray[np.int64]:
    flat = inputs.reshape(len(inputs), -1).astype(np.float64)
    return np.asarray((flat @ WEIGHTS).argmax(1), np.int64)


def made(
    count: int = COUNT,
    found: Sequence[Found] = (),
    seed: int = 0,
    seeds: NDArray[np.uint8] = SEEDS,
    ids: Sequence[int] | None = None,
) -> InspectedInputs:
    return inspected_inputs(seeds, scores, found, count, np.random.default_rng(seed), ids)


def arrays(taken: InspectedInputs) -> NDArray[np.uint8]:
    return np.concatenate(list(taken.parts()))


def test_two_inputs_of_a_line_are_one_group_and_lie_on_both_sides() -> None:
    taken = made()
    inputs = arrays(taken)
    assert inputs.shape == (len(taken), 2, 3, 1) == (COUNT, 2, 3, 1)
    for group in range(COUNT // 2):
        at = np.flatnonzero(taken.groups == group)
        assert len(at) == 2
        assert at[1] == at[0] + 1
        assert taken.halves[at[0]] == taken.halves[at[1]]
        assert len(set(labels(inputs[at]))) == 2
        assert np.abs(np.diff(inputs[at].astype(int), axis=0)).max() <= 1


def test_any_beginning_has_as_many_of_each_half() -> None:
    halves = made().halves
    assert np.bincount(halves).tolist() == [COUNT // 2, COUNT // 2]
    for end in range(20, COUNT, 20):
        assert abs(2 * int((halves[:end] == HELD_OUT).sum()) - end) <= 4


@pytest.mark.parametrize("first", [0, 1000])
def test_findings_are_a_tenth_of_those_to_choose_on_and_none_is_of_a_held_out_seed(
    first: int,
) -> None:
    """Seeds are told by their ids, which are no positions where a run took some of them."""
    made_of = np.repeat(np.stack(np.divmod(np.arange(300), 100), axis=1), 3, axis=1)
    shown = made_of.astype(np.uint8).reshape(-1, 2, 3, 1)
    found = [Found(seed, one) for seed, one in enumerate(shown, first)]
    rng = np.random.default_rng(0)
    drawn = seed_halves(labels(SEEDS), COUNT // 2, rng)
    taken = made(found=found, ids=range(first, first + len(SEEDS)))
    inputs = arrays(taken)
    at = np.flatnonzero(taken.groups >= COUNT // 2)
    chosen = int((taken.halves == CHOOSING).sum())
    assert len(at) == len(set(taken.groups[at])) == chosen // 10 > 0
    assert (taken.halves[at] == CHOOSING).all()
    seeds = {100 * int(one[0, 0, 0]) + int(one[1, 0, 0]) for one in inputs[at]}
    assert len(seeds) == len(at)
    assert not seeds & set(drawn.held_out.reshape(-1).tolist())


def test_strata_are_bins_of_the_margin_with_equally_many_inputs() -> None:
    taken = made(found=[Found(0, SEEDS[0]), Found(1, SEEDS[1])])
    ordered = np.sort(taken.scores, axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    counts = np.bincount(taken.strata, minlength=STRATA)
    assert counts.max() - counts.min() <= 2
    for one in range(STRATA - 1):
        assert margins[taken.strata == one].max() < margins[taken.strata == one + 1].min()


def test_the_order_is_drawn_from_the_seed_whatever_rows_are_taken_together() -> None:
    one, same, other = made(), made(), made(seed=1)
    assert np.array_equal(arrays(one), arrays(same))
    assert np.array_equal(one.groups, same.groups)
    assert not np.array_equal(one.groups, other.groups)
    assert not np.array_equal(one.groups, np.sort(one.groups))
    taken = made(found=[Found(0, SEEDS[0])])
    whole = arrays(taken)
    assert np.array_equal(taken.rows(slice(5, 18)), whole[5:18])
    assert np.array_equal(np.stack([taken.rows(slice(n, n + 1))[0] for n in range(40)]), whole[:40])


def test_few_seeds_give_more_lines_to_choose_on() -> None:
    taken = made(1600, seeds=SEEDS[:120])
    chosen, held_out = np.bincount(taken.halves).tolist()
    assert chosen == 3 * held_out
    assert 2 * LEAST_LINES <= held_out <= 60


def test_too_few_lines_are_refused() -> None:
    assert len(made(4 * LEAST_LINES)) == 4 * LEAST_LINES
    line = r"300 seeds and --max-inputs 78 give 19 lines .* raise --max-inputs to 80 or more"
    with pytest.raises(UserError, match=line):
        made(4 * LEAST_LINES - 2)
    with pytest.raises(UserError, match="a pair with 100 seeds or more, of several classes"):
        made(seeds=SEEDS[:40])
    with pytest.raises(UserError, match="0 lines"):
        made(seeds=np.repeat(SEEDS[:1], 300, axis=0))


UNITS = 100


@given(st.lists(st.integers(0, 4), max_size=60))
def test_each_position_is_in_one_pair_and_what_is_left_over_has_one_label(said: list[int]) -> None:
    labels = np.array(said, np.int64)
    pairs = disjoint_lines(labels)
    used = pairs.reshape(-1).tolist()
    assert len(set(used)) == len(used)
    assert (labels[pairs[:, 0]] != labels[pairs[:, 1]]).all()
    assert len({label for at, label in enumerate(said) if at not in used}) <= 1


@given(st.integers(0, 10_000), st.integers(0, 200), st.integers(1, 5), st.integers(0, 150))
def test_no_seed_is_in_both_halves(number: int, seeds: int, classes: int, most: int) -> None:
    rng = np.random.default_rng(number)
    labels = rng.integers(classes, size=seeds)
    drawn = seed_halves(labels, most, rng)
    chosen, held_out = drawn.choosing.reshape(-1).tolist(), drawn.held_out.reshape(-1).tolist()
    assert not set(chosen) & set(held_out)
    assert len(set(held_out)) == len(held_out)
    assert len(drawn.choosing) + len(drawn.held_out) <= most
    assert len(drawn.choosing) <= max(MOST_CHOOSING * len(drawn.held_out), most % 2)
    for half in (drawn.choosing, drawn.held_out):
        assert (labels[half[:, 0]] != labels[half[:, 1]]).all()


def mixed(drawn: SeedHalves, seeds: int, rng: np.random.Generator) -> BehaviourBlock:
    """Units and a hypothesis that are independent features of seeds, mixed along their lines."""
    ends = np.concatenate([drawn.held_out, drawn.choosing])
    share = rng.random(len(ends))[:, None]

    def along(features: NDArray[np.float64]) -> NDArray[np.float64]:
        on_lines = features[ends[:, 0]] * share + features[ends[:, 1]] * (1 - share)
        twice = np.repeat(on_lines, 2, axis=0)
        return np.asarray(twice + 0.1 * rng.normal(size=twice.shape))

    groups = np.arange(2 * len(ends)) // 2
    return BehaviourBlock(
        {"activation": along(rng.normal(size=(seeds, UNITS))).astype(np.float32)},
        along(rng.normal(size=(seeds, 1))),
        np.zeros(len(groups)),
        groups,
        np.where(groups < len(drawn.held_out), HELD_OUT, CHOOSING).astype(np.int8),
        np.zeros(len(groups), np.int64),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [90, 200])
@pytest.mark.parametrize("number", range(2))
def test_features_of_seeds_that_have_nothing_in_common_are_nothing(seeds: int, number: int) -> None:
    rng = np.random.default_rng(number)
    drawn = seed_halves(rng.integers(10, size=seeds), 800, rng)
    hypothesis = UnitHypothesis("brightness", lambda _: 0.0, built_in=True)
    layers = (UnitLayer("CONV_2D", 0, UNITS),)
    inspection = Inspection(layers, (hypothesis,), 0.001, rng)
    inspection.add(mixed(drawn, seeds, rng))
    assert [one.measure for one in inspection.result().best if one.beyond] == []


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=30))
def test_groups_stay_together_and_strata_are_kept(pairs: list[tuple[int, int]]) -> None:
    groups, strata = np.array(pairs, np.int64).T
    for order in group_permutations(groups, strata, 5, np.random.default_rng(0)):
        assert sorted(order) == list(range(len(pairs)))
        assert (strata[order] == strata).all()
        for group in np.unique(groups):
            assert len(np.unique(groups[order][groups == group])) == 1


def test_permutations_mix_what_they_may() -> None:
    """Pairs change places and their inputs too; single inputs are permuted evenly within strata."""
    groups, strata = np.repeat(np.arange(5), 2), np.zeros(10, np.int64)
    orders = group_permutations(groups, strata, 400, np.random.default_rng(0))
    assert set(orders[:, 0]) == set(range(10))
    assert np.bincount(orders[:, 0]).min() > 15
    strata = np.repeat([0, 1], 4)
    orders = group_permutations(np.arange(8), strata, 4000, np.random.default_rng(0))
    assert len(np.unique(orders, axis=0)) > 570  # of 4! × 4! = 576
