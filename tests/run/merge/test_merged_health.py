"""What was seen of the devices of several runs, as of one."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeflare.run.merge.merged_health import merged_health

Seen = dict[str, Any]

celsius = st.integers(-20, 120).map(float)


@st.composite
def ranges(draw: st.DrawFn) -> dict[str, float]:
    seen = draw(st.lists(celsius, min_size=1, max_size=4))
    return {"first": seen[0], "min": min(seen), "max": max(seen), "last": seen[-1]}


readings = st.fixed_dictionaries(
    {
        "temperatures": st.dictionaries(st.sampled_from(["cpu", "skin"]), ranges()),
        "frequencies": st.dictionaries(st.sampled_from(["cpu0"]), ranges()),
        "canaries": st.dictionaries(
            st.sampled_from(["same", "varied", "changed"]), st.integers(1, 9)
        ),
        "pauses": st.integers(0, 9),
        "paused_seconds": st.integers(0, 99).map(float),
        "failed": st.booleans(),
    }
)
quick = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])

noted = st.fixed_dictionaries(
    {
        "devices": st.lists(readings, min_size=2, max_size=2),
        "warnings": st.lists(st.sampled_from(["hot", "varied"]), unique=True),
    }
)


@quick
@given(runs=st.lists(noted, min_size=1, max_size=4))
def test_counts_add_up_and_extremes_are_those_of_all(runs: list[Seen]) -> None:
    found = merged_health(runs)
    for at, device in enumerate(found["devices"]):
        seen = [run["devices"][at] for run in runs]
        for key in ("pauses", "paused_seconds"):
            assert device[key] == sum(one[key] for one in seen)
        for result in ("same", "varied", "changed"):
            counted = sum(one["canaries"].get(result, 0) for one in seen)
            assert device["canaries"].get(result, 0) == counted
        assert device["failed"] == any(one["failed"] for one in seen)
        for zone, range_ in device["temperatures"].items():
            all_ = [one["temperatures"][zone] for one in seen if zone in one["temperatures"]]
            assert range_ == {
                "first": all_[0]["first"],
                "min": min(one["min"] for one in all_),
                "max": max(one["max"] for one in all_),
                "last": all_[-1]["last"],
            }
        assert set(device["temperatures"]) == {z for one in seen for z in one["temperatures"]}
    assert set(found["warnings"]) == {line for run in runs for line in run["warnings"]}
    assert len(set(found["warnings"])) == len(found["warnings"])


@quick
@given(runs=st.lists(noted, min_size=2, max_size=4), at=st.integers(1, 3))
def test_merging_what_was_merged_is_merging_all(runs: list[Seen], at: int) -> None:
    parts = [merged_health(runs[:at]), merged_health(runs[at:])]
    assert merged_health(parts) == merged_health(runs)


@quick
@given(run=noted)
def test_a_run_of_which_nothing_was_seen_adds_nothing(run: Seen) -> None:
    assert merged_health([{}, run]) == merged_health([run]) == run
