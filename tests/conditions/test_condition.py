"""A condition as it is drawn: always the same input, within limits, whatever its function does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgeflare.conditions.condition import (
    SEVERITIES,
    Condition,
    at_severity,
    changed_input,
    condition,
)
from edgeflare.conditions.condition_registry import own_conditions
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import PCM_16
from edgeflare.domains.frames_domain import FramesDomain
from edgeflare.errors import UserError

shapes = st.tuples(st.integers(1, 12)) | st.tuples(st.integers(1, 12), st.integers(1, 4))
SPACES = {
    "audio": [PCM_16],
    "array": [
        ArrayDomain(dtype, lowest, highest).space
        for dtype, lowest, highest in [
            ("float32", -1.5, 0.1),
            ("int8", -128, 127),
            ("uint16", 0, 999),
        ]
    ],
    "frames": [FramesDomain.space],
}
SHAPES = {
    "audio": st.tuples(st.integers(1, 700)),
    "array": shapes,
    "frames": st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 9), st.just(3)),
}
OURS = [one for domain in SPACES for one in own_conditions(domain)]
severities = st.sampled_from(SEVERITIES) | st.floats(1, 5)
for_all = pytest.mark.parametrize("made", OURS, ids=lambda made: f"{made.domain}-{made.name}")


def inputs(
    space: InputSpace, shape: st.SearchStrategy[tuple[int, ...]]
) -> st.SearchStrategy[Input]:
    """Return inputs within the limits of a space; floats lie a little inside of them."""
    if space.whole:
        values: st.SearchStrategy[float] = st.integers(int(space.lowest), int(space.highest))
    else:
        values = st.floats(
            space.lowest, np.nextafter(np.float32(space.highest), np.float32(0)), width=32
        )
    return shape.flatmap(lambda one: arrays(space.dtype, one, elements=values))


@for_all
@settings(max_examples=20)
@given(data=st.data(), severity=severities, rng_seed=st.integers(0, 2**63))
def test_it_is_an_input_of_the_domain_and_always_the_same(
    made: Condition, data: st.DataObject, severity: float, rng_seed: int
) -> None:
    space = data.draw(st.sampled_from(SPACES[made.domain]))
    one = data.draw(inputs(space, SHAPES[made.domain]))
    before = one.copy()
    changed = changed_input(made, one, severity, rng_seed, space)
    assert (changed.shape, changed.dtype) == (one.shape, one.dtype)
    assert space.contains(changed)
    assert not np.shares_memory(changed, one)
    assert np.array_equal(one, before)
    for other in SEVERITIES:  # whatever is made in between
        changed_input(made, one, other, rng_seed + 1, space)
    backwards_in_memory = one[::-1].copy()[::-1]
    again = changed_input(made, backwards_in_memory, severity, rng_seed, space)
    assert np.array_equal(changed, again)


@for_all
@settings(max_examples=10)
@given(data=st.data(), severity=severities, other=severities)
def test_as_much_is_drawn_at_all_severities(
    made: Condition, data: st.DataObject, severity: float, other: float
) -> None:
    one = data.draw(inputs(SPACES[made.domain][0], SHAPES[made.domain]))
    states = []
    for at in (severity, other):
        rng = np.random.default_rng(0)
        made(one, at, rng)
        states.append(rng.bit_generator.state)
    assert states[0] == states[1]


@condition("draw", domain="array", summary="the first number that is drawn")
def draw(one: Input, severity: float, rng: np.random.Generator) -> Input:
    return np.full_like(one, rng.random())


@condition("other", domain="array", summary="likewise")
def other_draw(one: Input, severity: float, rng: np.random.Generator) -> Input:
    return np.full_like(one, rng.random())


UNBOUNDED = ArrayDomain().space


def drawn(made: Condition, one: Input, severity: float = 3, rng_seed: int = 0) -> float:
    return float(changed_input(made, one, severity, rng_seed, UNBOUNDED).flat[0])


def test_what_is_drawn_depends_on_run_seed_input_shape_and_condition_but_not_on_severity() -> None:
    one = np.zeros((2, 3), np.float32)
    first = drawn(draw, one)
    assert {drawn(draw, one, severity) for severity in (1, 2.5, 5)} == {first}
    others = [
        drawn(draw, one, rng_seed=1),
        drawn(draw, one + np.float32(1)),
        drawn(draw, one.reshape(3, 2)),
        drawn(other_draw, one),
    ]
    assert len({first, *others}) == 5


def test_the_limits_of_the_pair_are_held() -> None:
    @condition("large", domain="array", summary="values beyond all limits")
    def large(one: Input, severity: float, rng: np.random.Generator) -> Input:
        return np.asarray(one + np.float32(100))

    space = ArrayDomain(lowest=-1, highest=2).space
    assert changed_input(large, np.zeros(3, np.float32), 1, 0, space).tolist() == [2, 2, 2]


RNG = np.random.default_rng(0)


@condition("overwriting", domain="image", summary="one that writes into its input")
def overwriting(image: Input, _severity: float, _rng: np.random.Generator) -> Input:
    image[:] = 0
    return image


@condition("failing", domain="image", summary="one that fails")
def failing(_image: Input, _severity: float, _rng: np.random.Generator) -> Input:
    raise KeyError("boom")


@condition("wide", domain="array", summary="floats of another width")
def wide(one: Input, _severity: float, _rng: np.random.Generator) -> Input:
    return one.astype(np.float64)


def test_a_condition_cannot_write_into_its_input() -> None:
    image = np.full((8, 8, 1), 7, dtype=np.uint8)
    with pytest.raises(UserError, match=r"'overwriting' of package .* fails at severity 3"):
        overwriting(image, 3, RNG)
    assert (image == 7).all()
    assert image.flags.writeable


def test_a_condition_that_fails_is_named() -> None:
    with pytest.raises(UserError, match=r"'failing' of package .*KeyError: 'boom'"):
        failing(np.zeros((8, 8, 1), dtype=np.uint8), 1, RNG)


def test_a_mistake_in_a_condition_of_ours_is_no_package_to_uninstall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(failing.change, "__module__", "edgeflare.conditions.image")
    with pytest.raises(KeyError, match="boom"):
        failing(np.zeros((8, 8, 1), dtype=np.uint8), 1, RNG)


@condition("endless", domain="array", summary="one that returns infinity")
def endless(one: Input, _severity: float, _rng: np.random.Generator) -> Input:
    return np.asarray(one + np.float32(np.inf))


def test_infinity_is_refused() -> None:
    with pytest.raises(UserError, match="'endless' returned infinity or NaN at severity 2"):
        endless(np.zeros(3, np.float32), 2, RNG)


def test_another_dtype_is_refused() -> None:
    with pytest.raises(UserError, match=r"condition 'wide' returned float64 of shape"):
        wide(np.zeros(3, np.float32), 1, RNG)
    with pytest.raises(UserError, match="condition 'wide' returned float64"):
        changed_input(wide, np.zeros(3, np.float32), 1, 0, UNBOUNDED)


VALUES = (20.0, 15.0, 10.0, 5.0, 0.0)


@pytest.mark.parametrize(("severity", "value"), [(1, 20.0), (3, 10.0), (5, 0.0), (2.5, 12.5)])
def test_whole_severities_have_their_values_and_others_lie_between(
    severity: float, value: float
) -> None:
    assert at_severity(VALUES, severity) == value


@given(lower=st.floats(1, 5), higher=st.floats(1, 5))
def test_what_falls_from_one_severity_to_the_next_falls_between_them(
    lower: float, higher: float
) -> None:
    lower, higher = sorted((lower, higher))
    assert at_severity(VALUES, lower) >= at_severity(VALUES, higher)
