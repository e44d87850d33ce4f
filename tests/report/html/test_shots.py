"""What a card shows of an entry's inputs, by the form that their domain chose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from documents import REFINED, finding
from edgeflare.core.input_view import (
    CurvesView,
    ImageView,
    InputView,
    PartsView,
    SoundView,
    ValuesView,
)
from edgeflare.domains.array.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.report.html.comparison_plot import ComparisonPlot
from edgeflare.report.html.page_allowance import PageAllowance
from edgeflare.report.html.pictures import Picture
from edgeflare.report.html.shots import ShotGroup, shot_groups
from edgeflare.report.html.stored_views import StoredView, stored_views
from stored_runs import chirp, noisy, stored_run

IMAGE = ImageView(np.zeros((4, 4, 1), np.uint8))
SOUND = SoundView(np.ones(80, np.int16), 8_000)
CURVES = CurvesView(np.zeros((5, 2)))
VALUES = ValuesView(np.zeros(5))


def groups(**views: InputView | None) -> tuple[ShotGroup, ...]:
    stored = [StoredView(what, f"{what}.file", view) for what, view in views.items()]
    return shot_groups(stored, PageAllowance(10_000))


@pytest.mark.parametrize(
    ("view", "kinds"),
    [
        (IMAGE, ["picture", "picture", "picture"]),
        (SOUND, ["sound", "sound", "sound"]),
        (CURVES, ["plot"]),
        (VALUES, ["plot"]),
    ],
)
def test_a_view_is_drawn_in_its_form(view: InputView, kinds: list[str]) -> None:
    (group,) = groups(seed=view, trigger=view)
    assert group.name == ""
    assert [shot.kind for shot in group.shots] == kinds
    (alone,) = groups(seed=view)
    assert [shot.kind for shot in alone.shots] == kinds[:1]


def test_several_inputs_have_a_group_each() -> None:
    view = PartsView({"voice": SOUND, "age": VALUES})
    shown = groups(seed=view, trigger=view)
    assert [group.name for group in shown] == ["voice", "age"]
    assert [len(group.shots) for group in shown] == [3, 1]


def test_a_seed_that_is_gone_leaves_the_trigger() -> None:
    expected: list[tuple[InputView, list[str]]] = [
        (IMAGE, ["picture", "picture"]),
        (SOUND, ["sound", "sound"]),
        (VALUES, ["picture", "plot"]),
    ]
    for view, kinds in expected:
        (group,) = groups(seed=None, trigger=view)
        assert [shot.kind for shot in group.shots] == kinds
    (group,) = groups(seed=None, trigger=None)
    assert group.shots == (Picture("seed", None), Picture("trigger", None))


def test_a_refined_array_is_shown_before_and_after() -> None:
    other = ValuesView(np.ones(5))
    (group,) = groups(seed=VALUES, before=other, trigger=VALUES)
    plots = [shot for shot in group.shots if isinstance(shot, ComparisonPlot)]
    assert [plot.names for plot in plots] == [("seed", "before"), ("seed", "trigger")]


def test_arrays_of_two_shapes_are_shown_apart() -> None:
    (group,) = groups(seed=VALUES, trigger=ValuesView(np.zeros(4)))
    (shot,) = group.shots
    assert isinstance(shot, ComparisonPlot)
    assert shot.names == ("trigger",)


def test_stored_sounds_are_shown_at_the_rate_of_their_files(tmp_path: Path) -> None:
    seed = chirp(11_025)
    document, directory = stored_run(tmp_path, AudioDomain(11_025), [(seed, noisy(seed, 40))])
    (entry,) = document.findings
    shown = stored_views(directory, entry, document.pair)
    assert [(one.what, one.file) for one in shown] == [
        ("seed", "seeds/000000.wav"),
        ("trigger", "findings/000000.wav"),
    ]
    for one in shown:
        assert isinstance(one.view, SoundView)
        assert one.view.sample_rate == 11_025
    (tmp_path / "findings/000000.wav").write_bytes(b"RIFF")
    (tmp_path / "seeds/000000.wav").unlink()
    assert [one.view for one in stored_views(directory, entry, document.pair)] == [None, None]


def test_stored_arrays_have_the_bounds_of_the_run(tmp_path: Path) -> None:
    seed = np.array([0.5, -0.5], np.float32)
    domain = ArrayDomain(lowest=-1, highest=1)
    document, directory = stored_run(
        tmp_path,
        domain,
        [(seed, -seed)],
        pair={"domain": "array", "domain_settings": {"lowest": -1, "highest": 1}},
    )
    for one in stored_views(directory, document.findings[0], document.pair):
        assert isinstance(one.view, ValuesView)
        assert (one.view.lowest, one.view.highest) == (-1, 1)


def test_what_was_before_refinement_is_read_too(tmp_path: Path) -> None:
    seed = chirp(8_000)
    document, directory = stored_run(tmp_path, AudioDomain(8_000), [(seed, noisy(seed, 40))])
    stored = directory.store_input("refined", 0, noisy(seed, 90), AudioDomain(8_000)).path
    refined = finding(refined={**REFINED, "image_before": stored}).refined
    entry = replace(document.findings[0], refined=refined)
    assert [one.what for one in stored_views(directory, entry, document.pair)] == [
        "seed",
        "before",
        "trigger",
    ]
