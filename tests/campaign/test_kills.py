"""Whatever is killed, and whenever: no finding is lost or doubled, and nothing is left running."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from campaign_kills import Campaign, Victim, kill_many
from documents import Document

TIMES: dict[Victim, int] = {"host": 1, "agent": 1, "worker": 3}
"""How often each is killed; a worker is one of either side, by chance."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Document:
    campaign = Campaign(tmp_path_factory.mktemp("undisturbed"))
    document = campaign.run()
    campaign.await_the_end_of_all()
    assert len(document["findings"]) > 5
    return document


@pytest.mark.parametrize("victim", get_args(Victim))
def test_what_is_killed_costs_time_only(
    victim: Victim, undisturbed: Document, tmp_path: Path
) -> None:
    times = TIMES[victim]
    tally = kill_many(victim, times, tmp_path, undisturbed, seed=2)

    assert tally.total == times
    if victim == "worker":
        assert set(tally.kills) == {"host's worker", "device's worker"}
    if victim == "host":
        assert tally.starts == times + tally.campaigns
