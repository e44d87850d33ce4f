from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.errors import UserError
from edgeflare.pages.answers.values import RegressionView
from edgeflare.tasks.regression import Regression
from edgeflare.tasks.value_decoder import MOST_SHOWN_VALUES, STATE_VALUES, DistanceName
from kept_decoders import kept_again

VALUES = Tensor("values", (1, 6), "float32")
INT8 = Tensor("values", (1, 6), "int8", 0.5, 3)
values = arrays(np.float32, (6,), elements=st.floats(-10, 10, width=32))
NAMES = get_args(DistanceName)


def task(distance: DistanceName = "absolute", tolerance: float = 0.5) -> Regression:
    points = (0, 2) if distance == "normalized" else ()
    return Regression(tolerance=tolerance, distance=distance, normalize=points)


def outputs(*tensors: Tensor, frames: int = 0) -> ModelOutputs:
    def no_sample(_seeds: int) -> RawBatch:
        raise AssertionError("values need no sample")

    return ModelOutputs("mask.tflite", tensors, frozenset(), frames, (), no_sample)


def read(one: Regression, *rows: NDArray[Any]) -> list[Answer]:
    return list(one.decoder(outputs(VALUES)).read(RawBatch(np.stack(rows).astype(np.float32))))


@pytest.mark.parametrize("distance", NAMES)
@given(first=values, second=values)
def test_strengths_are_symmetric_and_above_zero_where_two_differ(
    distance: DistanceName, first: NDArray[np.float32], second: NDArray[np.float32]
) -> None:
    one, other = read(task(distance), first, second)
    strength = one.strength_against(other)
    assert strength is not None
    assert strength == other.strength_against(one)
    assert strength == pytest.approx(one.distance(other) / 0.5 - 1.0)
    assert one.differs(other) == other.differs(one) == (strength > 0.0)
    assert one.strength_against(one) == -1.0
    assert not one.differs(one)


@given(values, values)
def test_distances_are_what_their_names_say(
    first: NDArray[np.float32], second: NDArray[np.float32]
) -> None:
    change = first.astype(float) - second.astype(float)
    norms = np.linalg.norm(first.astype(float)), np.linalg.norm(second.astype(float))
    assume(min(norms) > 0.1)
    expected = {
        "absolute": np.abs(change).max(),
        "mean-absolute": np.abs(change).mean(),
        "l2": np.linalg.norm(change),
        "relative": np.linalg.norm(change) / max(norms),
        "cosine": 1.0 - float(first.astype(float) @ second.astype(float)) / (norms[0] * norms[1]),
    }
    for name, distance in expected.items():
        one, other = read(task(name), first, second)  # type: ignore[arg-type]
        assert one.distance(other) == pytest.approx(distance, abs=1e-9)


@pytest.mark.parametrize(
    ("dtype", "first", "second"),
    [("int32", 2**24, 2**24 + 1), ("float64", 1.0, 1.0 + 2**-40), ("float64", 1e300, 1.1e300)],
)
def test_values_that_float32_does_not_hold_are_told_apart(
    dtype: str, first: float, second: float
) -> None:
    tensor = Tensor("values", (1, 1), dtype)
    known = Regression(tolerance=abs(second - first) / 2)
    decoder = kept_again(known, known.decoder(outputs(tensor)))
    one, other = decoder.read(RawBatch(np.array([[first], [second]], dtype)))
    assert one.distance(other) == abs(second - first)
    assert one.differs(other)
    target = decoder.target(np.array([second]))
    assert target is not None
    assert (one.differs(target), other.differs(target)) == (True, False)
    (view,) = decoder.views({"twin": one, "device": other}, ("twin", "device"))
    assert isinstance(view, RegressionView)
    assert view.values["twin"] != view.values["device"]


def test_points_are_compared_in_units_of_two_of_them() -> None:
    eyes = np.array([0, 0, 4, 3, 0, 10], np.float32)  # points 0 and 2 are 10 apart
    moved = eyes + np.array([3, 4, 0, 0, 0, 0], np.float32)
    one, other = read(task("normalized"), eyes, moved)
    unit = (10.0 + np.hypot(3, 6)) / 2
    assert one.distance(other) == pytest.approx((5.0 / 3) / unit)


SURE = np.array([0, 0, 0.9, 4, 3, 0.9, 0, 10, 0.9], np.float32)  # (x, y, confidence) of 3 points
POINTS = Tensor("values", (1, 3, 3), "float32")


def points(distance: DistanceName = "mean-point", **keys: Any) -> Decoder:
    known: dict[str, Any] = {"tolerance": 0.5, "point_size": 3, "dimensions": 2, **keys}
    return Regression(distance=distance, **known).decoder(outputs(POINTS))


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        ("mean-point", (5 + 0 + 13) / 3),
        ("farthest-point", 13.0),
        ("absolute", 12.0),
        ("l2", np.sqrt(25 + 169)),
        ("normalized", (5 + 0 + 13) / 3 / ((10 + np.hypot(2, 18)) / 2)),
    ],
)
def test_of_points_the_coordinates_alone_count(distance: DistanceName, expected: float) -> None:
    unit = {"normalize": (0, 2)} if distance == "normalized" else {}
    decoder = points(distance, **unit)
    moved = SURE + np.array([3, 4, 0, 0, 0, -0.8, 5, 12, -0.9], np.float32)
    one, other = decoder.read(RawBatch(np.stack([SURE, moved]).reshape(2, 3, 3)))
    assert one.distance(other) == pytest.approx(expected)
    (view,) = decoder.views({"original": one, "device": other}, ("original", "device"))
    assert isinstance(view, RegressionView)
    assert view.names[:3] == ("point 0 x", "point 0 y", "point 1 x")
    assert [one.places for one in view.points] == [{}] * 3
    assert view.points[1].distance == 0.0
    whole, alone = decoder.target(SURE), decoder.target(np.delete(SURE, [2, 5, 8]))
    assert whole is not None
    assert alone is not None
    assert whole.equals(alone)
    assert kept_again(Regression, decoder) == decoder


def test_points_lie_in_the_picture_and_have_distances_in_the_tolerances_unit() -> None:
    keys: dict[str, Any] = {"picture": (0.0, -10.0, 20.0, 10.0), "axes": "yx"}
    decoder = points("normalized", normalize=(0, 2), **keys)
    moved = SURE + np.array([3, 4, 0, 0, 0, 0, 0, 0, 0], np.float32)
    one, other = decoder.read(RawBatch(np.stack([SURE, moved]).reshape(2, 3, 3)))
    (view,) = decoder.views({"original": one, "device": other}, ("original", "device"))
    assert isinstance(view, RegressionView)
    first, second, _ = view.points
    assert first.places == {"original": (0.0, 0.5), "device": (0.2, 0.65)}
    assert second.places["original"] == (0.15, 0.7)  # y, x is 4, 3
    assert view.distance is not None
    assert first.distance == pytest.approx(3 * view.distance)
    assert second.distance == 0.0
    (failed,) = decoder.read(RawBatch(SURE.reshape(1, 3, 3), {0: "hang"}))
    (view,) = decoder.views({"original": one, "device": failed}, ("original", "device"))
    assert isinstance(view, RegressionView)
    assert [one.distance for one in view.points] == [None] * 3
    assert list(view.points[0].places) == ["original"]


def test_zeros_have_a_cosine_and_a_relative_distance() -> None:
    nothing, something = np.zeros(6), np.ones(6)
    for name in ("cosine", "relative"):
        zero, also, one = read(task(name), nothing, nothing, something)
        assert zero.distance(also) == 0.0
        assert zero.distance(one) == 1.0


@given(arrays(np.int8, (4, 6)))
def test_one_output_is_read_alike_alone_and_among_others(raw: NDArray[np.int8]) -> None:
    other = Tensor("other", (1, 5), "float32")
    row = (other, INT8)
    alone = Regression(tolerance=0.5).decoder(outputs(INT8))
    among = Regression(tolerance=0.5, output="values").decoder(outputs(*row))
    again = kept_again(Regression, among)
    packed = RawBatch(pack_rows(row, [np.ones((4, 1, 5), np.float32), raw]))
    for mine, *others in zip(
        alone.read(RawBatch(raw)), among.read(packed), again.read(packed), strict=True
    ):
        assert all(mine.equals(one) and not mine.differs(one) for one in others)


def test_an_answer_without_decisions_breaks_no_reader() -> None:
    one, other = read(task(), np.zeros(6), np.ones(6))
    assert not one.chooses
    assert (one.decision, one.tied, one.scores.size) == (0, False, 0)
    assert one.margin(one) == one.lead() == inf
    assert not one.equals(other)
    wide = Tensor("mask", (1, 100, 7), "float32")
    (answer,) = task().decoder(outputs(wide)).read(RawBatch(np.ones((1, 700), np.float32)))
    np.testing.assert_allclose(answer.state(), np.ones(STATE_VALUES))


def test_failures_differ_from_values_and_not_from_each_other() -> None:
    batch = RawBatch(np.array([[np.nan] * 6, [1.0] * 6, [0.0] * 6], np.float32), {2: "hang"})
    bad, good, hung = task().decoder(outputs(VALUES)).read(batch)
    assert (bad.failure, hung.failure) == ("invalid-output", "hang")
    assert bad.differs(good)
    assert good.differs(bad)
    assert not bad.differs(hung)
    assert good.strength_against(bad) is None


def test_two_models_are_a_pair_where_they_give_as_many_values() -> None:
    first = task().decoder(outputs(VALUES))
    task().require_pair(first, task().decoder(outputs(INT8)), ())
    wide = task().decoder(outputs(Tensor("other", (1, 7), "float32")))
    with pytest.raises(UserError, match="they are no pair, or output names another"):
        task().require_pair(first, wide, ())
    with pytest.raises(UserError, match="remove the key classes"):
        task().require_pair(None, first, ("a", "b"))


def test_values_in_another_order_are_no_pair(refusal: Callable[..., str]) -> None:
    def shaped(*shape: int, frames: int = 0) -> Decoder:
        return task().decoder(outputs(Tensor("picture", shape, "float32"), frames=frames))

    last = shaped(1, 32, 48, 3)
    for alike in ((32, 48, 3), (1, 1536, 3), (1, 32, 144, 1), (4608,)):
        task().require_pair(shaped(*alike), last, ())
    for unlike in ((1, 3, 32, 48), (1, 48, 32, 3), (1, 3, 1536), (1, 32, 3, 48)):
        said = refusal(task().require_pair, shaped(*unlike), last, ())
        assert f"gives {unlike} and the compressed model (1, 32, 48, 3), as many values in" in said
    clip = shaped(2, 1, 3, 4, frames=2)
    assert "another order" in refusal(task().require_pair, shaped(2, 1, 4, 3, frames=2), clip, ())


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"tolerance": 0.0}, "tolerance is 0.0; expected a distance .absolute. above 0"),
        ({"tolerance": inf}, "tolerance is inf"),
        ({"tolerance": 2.5, "distance": "cosine"}, "above 0 and below 2"),
        ({"tolerance": 0.5, "distance": "far"}, "distance is 'far'; expected one of absolute, "),
        ({"tolerance": 0.5, "distance": "normalized"}, "belong together"),
        ({"tolerance": 0.5, "normalize": (0, 1)}, "belong together"),
        ({"tolerance": 0.5, "distance": "normalized", "normalize": (1, 1)}, r"\[1, 1\]"),
        ({"tolerance": 0.5, "point_size": 0}, "point_size is 0"),
        ({"tolerance": 0.5, "dimensions": 3}, "of points of 2 values: give 1 to 2, or say point_s"),
        ({"tolerance": 0.5, "picture": (0.0, 0.0, 1.0)}, r"such as \[0, 0, 1, 1\] of shares"),
        ({"tolerance": 0.5, "picture": (1.0, 0.0, 1.0, 1.0)}, "expected the values at its left"),
        (
            {"tolerance": 0.5, "distance": "relative", "picture": (0.0, 0.0, 1.0, 1.0)},
            'say distance = "mean-point"',
        ),
        (
            {"tolerance": 0.5, "dimensions": 1, "picture": (0.0, 0.0, 1.0, 1.0)},
            "needs points of 2 dimensions",
        ),
    ],
)
def test_values_out_of_their_range_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        Regression(**keys)


def test_points_that_an_output_lacks_are_refused() -> None:
    far = Regression(tolerance=0.1, distance="normalized", normalize=(0, 3))
    with pytest.raises(UserError, match=r"'values' \(1, 6\) has no points 0 and 3 of 2 values"):
        far.decoder(outputs(VALUES))
    with pytest.raises(UserError, match="has 6 values, which are no points of 4: correct point_s"):
        Regression(tolerance=0.1, point_size=4, dimensions=2).decoder(outputs(VALUES))


def test_values_that_hardly_vary_are_warned_of() -> None:
    alike = read(task(), *[np.full(6, n / 100) for n in range(9)])
    apart = read(task(), *[np.full(6, float(n)) for n in range(9)])
    (said,) = task().warnings(apart, alike, None)
    assert said.startswith("the compressed model's values are within the tolerance 0.5 of each")
    assert task().warnings(apart, apart, None) == []
    assert len(task().warnings(alike, alike, None)) == 2


def test_the_values_that_differ_most_are_shown() -> None:
    wide = Tensor("mask", (1, 300), "float32")
    decoder = Regression(tolerance=0.5, distance="mean-absolute").decoder(outputs(wide))
    first = np.zeros(300, np.float32)
    second = first.copy()
    changed = np.arange(40, 300, 17)[:MOST_SHOWN_VALUES]
    second[changed] = 2.0
    one, other = decoder.read(RawBatch(np.stack([first, second])))
    (view,) = decoder.views({"original": one, "device": other}, ("original", "device"))
    assert view.measure == "mean-absolute distance"
    assert view.distance == pytest.approx(one.distance(other))
    assert (view.tolerance, view.size) == (0.5, 300)
    assert view.names == tuple(f"value {place}" for place in changed)
    assert view.values == {"original": (0.0,) * len(changed), "device": (2.0,) * len(changed)}


def test_an_arm_that_failed_has_no_values_to_show() -> None:
    decoder = task().decoder(outputs(VALUES))
    (one,) = decoder.read(RawBatch(np.ones((1, 6), np.float32)))
    (failed,) = decoder.read(RawBatch(np.ones((1, 6), np.float32), {0: "hang"}))
    (view,) = decoder.views({"original": one, "device": failed}, ("original", "device"))
    assert view.distance is None
    assert view.values == {"original": (1.0,) * 6, "device": None}
    (view,) = decoder.views({"original": failed, "device": failed}, ("original", "device"))
    assert (view.size, view.names) == (0, ())


def test_a_target_is_right_within_the_tolerance() -> None:
    decoder = task().decoder(outputs(VALUES))
    truth = decoder.target(np.arange(6.0))
    near, far = read(task(), np.arange(6.0) + 0.5, np.arange(6.0) + 0.75)
    assert truth is not None
    assert (near.differs(truth), far.differs(truth)) == (False, True)
    assert far.against_truth(truth) == pytest.approx(0.75)
    assert decoder.target(np.array([np.nan] * 6)) is None
    clip = Regression(tolerance=0.5, frames="worst", first_frame=1)
    frames = clip.decoder(outputs(Tensor("values", (3, 1, 6), "float32"), frames=3))
    whole, one = frames.target(np.arange(18.0)), frames.target(np.arange(6.0))
    assert whole is not None
    assert one is not None
    np.testing.assert_array_equal(whole.values, np.arange(6.0, 18.0).reshape(2, 6))
    np.testing.assert_array_equal(one.values, [np.arange(6.0)] * 2)


def test_a_target_of_other_values_is_refused() -> None:
    decoder = task().decoder(outputs(VALUES))
    with pytest.raises(UserError, match=r"float64 \(5,\), expected 6 real numbers$"):
        decoder.target(np.zeros(5))
    with pytest.raises(UserError, match="text"):
        decoder.target(np.array(["one"] * 6))
    for one in (np.inf, -1e300):
        with pytest.raises(UserError, match="a value is infinite"):
            decoder.target(np.full(6, one))
