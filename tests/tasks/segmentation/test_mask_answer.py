"""Masks: how two are compared, how far they overlap, and the runs that show them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.frame_pooling import ClipFrames
from edgeflare.tasks.segmentation.mask_answer import (
    LOW_MEAN_IOU,
    MARGIN,
    OTHER_REGION,
    Margins,
    Mask,
    MaskAnswer,
    MaskRule,
    is_tied,
    largest_region,
    mean_iou,
    softened_iou,
)
from edgeflare.tasks.segmentation.mask_decoder import (
    MOST_RUNS,
    MaskDecoder,
    mask_runs,
    runs_to_show,
)

SHAPE = (6, 8)
ROWS, COLUMNS = SHAPE
NOTHING = np.empty(0)
STRICT_IOU = MaskRule(0.75, 0)
REGIONS = MaskRule(0.0, 4)
BOTH = MaskRule(0.75, 4)

masks = arrays(np.uint8, SHAPE, elements=st.integers(0, 2))
margins = arrays(np.float16, SHAPE, elements=st.sampled_from([0.0, 0.25, 0.5, 2.0]))
rules = st.sampled_from([STRICT_IOU, REGIONS, BOTH])


def answer(
    mask: Mask, rule: MaskRule = STRICT_IOU, margins: NDArray[np.float16] | float = 1.0
) -> MaskAnswer:
    kept = np.broadcast_to(np.asarray(margins, np.float16), mask.shape)
    tied = is_tied(mask, kept, rule)
    return MaskAnswer(0, tied, NOTHING, NOTHING, mask=mask, margins=kept, classes=3, rule=rule)


FAILED = replace(answer(np.zeros(SHAPE, np.uint8)), decision=None, tied=False, failure="hang")


def half(**changed: slice) -> Mask:
    """Return a mask whose upper half is of class 1, but for some pixels of its first row."""
    mask = np.zeros(SHAPE, np.uint8)
    mask[: ROWS // 2] = 1
    for columns in changed.values():
        mask[0, columns] = 0
    return mask


@given(masks, masks, margins, margins, rules)
def test_two_masks_deviate_as_the_rule_says(
    first: Mask,
    second: Mask,
    one_margins: NDArray[np.float16],
    other_margins: NDArray[np.float16],
    rule: MaskRule,
) -> None:
    one, other = answer(first, rule, one_margins), answer(second, rule, other_margins)
    low = mean_iou(first, second) < rule.overlap
    region = 0 < rule.region <= largest_region(first != second).size
    assert one.differs(other) == other.differs(one) == (low or region)
    strength = one.strength_against(other)
    assert strength == other.strength_against(one)
    assert strength is not None
    assert (strength > 0.0) <= one.differs(other)
    if one.differs(other):
        assert strength > 0.0 or one.differs_by_tie(other)
        assert one.differs_by_tie(other) == other.differs_by_tie(one)
        assert one.kind_against(other) == other.kind_against(one)
    else:
        assert strength == 0.0
    assert (one.margin(other) < 0.0) <= one.differs(other)
    assert not one.differs(one)
    assert one.equals(one)
    assert (one.chooses, one.counted, one.decision) == (True, False, 0)
    assert not one.scores.size
    assert not one.probabilities.size
    assert one.distance(other) == pytest.approx(other.distance(one))
    assert 0.0 <= one.distance(other) <= 1.0


@given(masks, masks, rules)
def test_without_ties_no_deviation_hangs_on_one(first: Mask, second: Mask, rule: MaskRule) -> None:
    one, other = answer(first, rule), answer(second, rule)
    assume(one.differs(other))
    assert not one.differs_by_tie(other)
    low = mean_iou(first, second) < rule.overlap
    assert one.kind_against(other) == (LOW_MEAN_IOU if low else OTHER_REGION)
    assert one.strength_against(other) == pytest.approx(
        rule.overlap - mean_iou(first, second) if low else 1.0
    )


@given(masks, masks, rules)
def test_a_deviation_in_tied_pixels_alone_hangs_on_ties(
    first: Mask, second: Mask, rule: MaskRule
) -> None:
    tied = np.where(first != second, 0.0, 1.0).astype(np.float16)
    one, other = answer(first, rule), answer(second, rule, tied)
    assume(one.differs(other))
    assert one.differs_by_tie(other)
    assert other.differs_by_tie(one)


def test_a_region_counts_with_its_pixels_that_are_not_tied() -> None:
    first, second = half(), half(changed=slice(0, 5))
    tied = np.ones(SHAPE, np.float16)
    tied[0, 0] = 0.0
    one = answer(first, REGIONS)
    assert one.kind_against(answer(second, REGIONS)) == OTHER_REGION
    assert not one.differs_by_tie(answer(second, REGIONS, tied))
    tied[0, 2] = 0.0  # between two pixels and two more, none of which are tied
    assert one.differs(answer(second, REGIONS, tied))
    assert one.differs_by_tie(answer(second, REGIONS, tied))


def test_a_region_is_as_strong_as_the_arm_that_is_less_sure_of_it() -> None:
    first, second = half(), half(changed=slice(0, 4))
    sure = np.full(SHAPE, 9.0, np.float16)
    sure[0, :4] = [1.0, 2.0, 3.0, 4.0]
    strength = answer(first, REGIONS, 8.0).strength_against(answer(second, REGIONS, sure))
    assert strength == pytest.approx(2.5)


def test_a_low_mean_iou_goes_before_a_region() -> None:
    one, other = answer(half(), BOTH), answer(half(changed=slice(0, 8)), BOTH)
    assert one.kind_against(other) == LOW_MEAN_IOU
    assert one.strength_against(other) == pytest.approx(0.75 - (16 / 24 + 24 / 32) / 2)


def test_the_distance_increases_before_a_pixel_changes() -> None:
    mask = half()
    near = np.ones(SHAPE, np.float16)
    near[0] = 0.125
    apart = answer(mask).distance(answer(mask, STRICT_IOU, near))
    assert answer(mask).distance(answer(mask)) == 0.0
    assert 0.0 < apart < answer(mask).distance(answer(half(changed=slice(0, 8))))


def test_a_mask_is_tied_where_its_tied_pixels_could_deviate() -> None:
    tied = np.ones(SHAPE, np.float16)
    tied[0, :3] = 0.0
    assert not answer(half(), BOTH, tied).tied
    tied[0, 3] = 0.0
    assert answer(half(), BOTH, tied).tied
    assert not answer(half(), STRICT_IOU, tied).tied
    assert answer(half(), STRICT_IOU, 0.0).tied
    assert not answer(half(), BOTH).tied


def test_a_state_is_short_and_says_where_the_classes_are() -> None:
    large = np.zeros((256, 256), np.uint8)
    large[:64] = 1
    state = answer(large).state()
    assert state.shape == (4 * 4 * 3,)
    assert state.reshape(4, 4, 3)[0, :, 1].tolist() == [1.0] * 4
    assert state.sum() == pytest.approx(16.0)
    many = replace(answer(large, BOTH), classes=256)
    assert many.state().shape == (256,)
    assert many.state()[:3].tolist() == [0.75, 0.25, 0.0]


@pytest.mark.parametrize("rule", [STRICT_IOU, REGIONS, BOTH])
def test_the_margin_falls_until_the_masks_deviate(rule: MaskRule) -> None:
    home = answer(half(), rule)
    changed = [answer(half(first=slice(0, n)), rule) for n in range(COLUMNS + 1)]
    changed += [answer(half() * np.uint8(0), rule)]
    margins = [one.margin(home) for one in changed]
    assert margins[0] == pytest.approx(MARGIN * (0.25 if rule is STRICT_IOU else 0.1))
    before = [margin for margin in margins if margin >= 0.0]
    assert margins[: len(before)] == before == sorted(before, reverse=True)
    assert [margin < 0.0 for margin in margins] == [one.differs(home) for one in changed]
    assert 1 < len(before) < len(margins)


def test_failures_differ_from_masks_and_not_from_each_other() -> None:
    good = answer(half())
    assert good.differs(FAILED)
    assert FAILED.differs(good)
    assert not FAILED.differs(FAILED)
    assert not good.differs_by_tie(FAILED)
    assert good.strength_against(FAILED) is None
    assert good.margin(FAILED) == 0.0
    assert not good.equals(FAILED)


def test_pixels_of_a_target_that_have_no_class_do_not_count() -> None:
    tensor = Tensor("mask", (1, ROWS, COLUMNS, 3), "float32")
    decoder = MaskDecoder((tensor,), 0, "scores", 0.5, BOTH, ClipFrames())
    mask = half().astype(np.int64)
    right, wrong = answer(half(), BOTH), answer(half(columns=slice(0, 5)), BOTH)
    truth = decoder.target(mask)
    assert truth is not None
    assert (right.differs(truth), wrong.differs(truth)) == (False, True)
    assert wrong.against_truth(truth) == mean_iou(wrong.mask, half())
    mask[0] = 255
    truth = decoder.target(mask)
    assert truth is not None
    assert (wrong.differs(truth), wrong.against_truth(truth)) == (False, 1.0)
    assert decoder.target(np.full(SHAPE, -1)) is None
    with pytest.raises(UserError, match="expected a class for each of 6 x 8 pixels"):
        decoder.target(np.zeros((8, 6), int))


@given(masks, masks, masks, masks)
def test_pictures_count_together_by_their_pixels(
    first: Mask, second: Mask, right: Mask, other: Mask
) -> None:
    known = np.arange(COLUMNS) < COLUMNS - 1
    truths = [answer(right), replace(answer(other), known=np.broadcast_to(known, SHAPE))]
    pooled = MaskAnswer.pooled([answer(first), answer(second)], truths)
    both = np.hstack([first, second[:, :-1]]), np.hstack([right, other[:, :-1]])
    assert pooled == mean_iou(*both)
    assert MaskAnswer.pooled([answer(first), FAILED], truths) == mean_iou(first, right)
    assert MaskAnswer.pooled([FAILED], truths[:1]) is None


overlapping = arrays(np.uint8, (5, 6), elements=st.integers(0, 3))
overlap_margins = arrays(np.float32, (5, 6), elements=st.floats(0.125, 8, width=32))


def by_hand(first: Mask, second: Mask) -> float:
    """Return the mean IoU, class by class."""
    each = []
    for one in range(4):
        a, b = first == one, second == one
        if (a | b).any():
            each.append((a & b).sum() / (a | b).sum())
    return float(np.mean(each))


@given(overlapping, overlapping)
def test_the_mean_iou_is_over_the_classes_that_either_mask_has(first: Mask, second: Mask) -> None:
    assert mean_iou(first, second) == pytest.approx(by_hand(first, second))
    assert mean_iou(first, second) == mean_iou(second, first)
    assert mean_iou(first, first) == 1.0


@given(overlapping, overlapping, overlap_margins, overlap_margins)
def test_a_softened_iou_is_never_above_that_of_the_masks(
    first: Mask, second: Mask, one: Margins, other: Margins
) -> None:
    soft = softened_iou(first, second, (one, other), 2)
    assert soft <= mean_iou(first, second) + 1e-6
    assert soft == pytest.approx(softened_iou(second, first, (other, one), 2))
    assert softened_iou(first, second, (one, one), 2) == pytest.approx(mean_iou(first, second))


def test_a_softened_iou_decreases_before_a_class_changes() -> None:
    mask = np.zeros((64, 64), np.uint8)
    mask[:32] = 1
    changed = mask.copy()
    changed[0] = 0
    sure, unsure = np.ones(mask.shape, np.float32), np.ones(mask.shape, np.float32)
    assert softened_iou(mask, mask, (sure, unsure), 2) == 1.0
    unsure[0] = 1e-6
    before = 1.0 - softened_iou(mask, mask, (sure, unsure), 2)
    after = 1.0 - softened_iou(mask, changed, (sure, unsure), 2)
    assert 0.5 * after < before < after
    assert after == pytest.approx(1.0 - mean_iou(mask, changed))


@given(arrays(np.bool_, (5, 6)))
def test_pixels_that_touch_by_a_corner_are_one_region(differing: NDArray[np.bool_]) -> None:
    region = largest_region(differing)
    assert region.size == region.pixels.sum() == max(map(len, regions(differing)), default=0)
    assert not (region.pixels & ~differing).any()


def regions(differing: NDArray[np.bool_]) -> list[set[tuple[int, int]]]:
    """Return the connected regions, pixel by pixel."""
    left = {(int(row), int(column)) for row, column in np.argwhere(differing)}
    found = []
    while left:
        region, border = set(), [left.pop()]
        while border:
            row, column = border.pop()
            region.add((row, column))
            near = {(row + i, column + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
            left -= near
            border.extend(near)
        found.append(region)
    return found


masks_of_any_size = arrays(
    np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 3)
)


def numbers(runs: str) -> list[int]:
    return list(map(int, runs.split()))


def from_runs(runs: str, rows: int, columns: int) -> Mask:
    known = numbers(runs)
    return np.repeat(np.array(known[::2], np.uint8), known[1::2]).reshape(rows, columns)


@given(masks_of_any_size)
def test_small_masks_are_shown_as_they_are(mask: Mask) -> None:
    rows, columns, runs = runs_to_show(mask.shape, {"twin": mask})
    assert (rows, columns) == mask.shape
    assert np.array_equal(from_runs(runs["twin"], rows, columns), mask)
    values = numbers(runs["twin"])[::2]
    assert all(one != other for one, other in pairwise(values))


def test_large_masks_are_shown_by_the_nearest_of_their_pixels() -> None:
    mask = np.zeros((512, 256), np.uint8)
    mask[:256, 64:] = 3
    rows, columns, runs = runs_to_show((512, 256), {"device": mask})
    assert (rows, columns) == (128, 64)
    assert np.array_equal(from_runs(runs["device"], rows, columns), mask[2::4, 2::4])


def test_masks_of_many_runs_are_shown_with_fewer_pixels() -> None:
    noise = np.random.default_rng(3).integers(0, 2, (3, 256, 256)).astype(np.uint8)
    arms = dict(zip(("original", "twin", "device"), noise, strict=True))
    rows, columns, runs = runs_to_show((256, 256), arms)
    assert (rows, columns) == (16, 16)
    known = [numbers(one) for one in runs.values()]
    assert sum(map(len, known)) <= 2 * MOST_RUNS
    assert all(sum(one[1::2]) == rows * columns for one in known)
    assert len(mask_runs(noise[0])) > 60_000


def test_a_mask_of_slightly_too_many_runs_is_shown_with_fewer_pixels() -> None:
    striped = (np.arange(128) // 22 % 2).astype(np.uint8)
    mask = np.broadcast_to(striped, (128, 128))
    assert 2 * MOST_RUNS < len(mask_runs(mask)) < 3 * MOST_RUNS
    assert runs_to_show((128, 128), {"device": mask})[:2] == (96, 96)
