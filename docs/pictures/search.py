"""Make the picture of docs/search.md: how `boundary` finds a trigger from one seed of the example.

.venv/bin/python docs/pictures/search.py    (needs the extra `plots`)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from edgeflare.campaign.chain import chain_generator
from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.campaign.run_description import describe_run
from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input import Input
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.models.pair import load_pair
from edgeflare.run.plan import Plan
from edgeflare.search.boundary import Boundary
from edgeflare.search.operator_pool import domain_operators
from edgeflare.search.strategy import SearchGenerator, Start

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
DEVICE = "emulated-builtin"
COLUMNS = 8
MOST = 3 * COLUMNS

STAGES = {
    "seed": "tab:gray",
    "leap": "tab:purple",
    "descend": "tab:brown",
    "weigh": "tab:orange",
    "bisect": "tab:blue",
    "follow": "tab:green",
}
"""The stages of a search, and their colours."""

_STAGE_OF = {
    "_leap": "leap",
    "_descend": "descend",
    "_weight_blocks": "weigh",
    "_bisect": "bisect",
    "_follow": "follow",
}


@dataclass(frozen=True)
class SearchStep:
    """An image that a search looked at, and what it saw.

    Attributes:
        stage: the stage of the search.
        image: HWC uint8.
        outcome: what the arms answered.

    """

    stage: str
    image: Input
    outcome: Outcome

    def margin(self, arm: Arm, label: int) -> float:
        """Return by how much an arm's score of a label is above its best other one."""
        scores = self.outcome[arm].scores
        return float(scores[label] - np.delete(scores, label).max())


def main() -> None:
    """Read the command line, and write the picture."""
    parser = argparse.ArgumentParser(description="Make a picture of a search.")
    parser.add_argument("--limit", type=int, default=40, help="seeds to choose from")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("search.png"))
    options = parser.parse_args()
    goal = Goal(Find.ANY)
    plan = Plan("boundary", goal, (DEVICE,), limit=options.limit)
    with ExitStack() as stack:
        pair = load_pair(EXAMPLE)
        opened = open_pair(pair, plan, [find_profile(DEVICE)], stack)
        steps = most_telling(search(opened, plan, seed_id) for seed_id in range(options.limit))
    draw(steps, pair.classes).savefig(options.out, dpi=100, metadata={"Software": None})


def most_telling(searches: Iterator[Sequence[SearchStep]]) -> Sequence[SearchStep]:
    """Return the search that fits into the picture and has the most of bisecting and following."""
    fitting = (steps for steps in searches if 1 < len(steps) <= MOST)
    return max(fitting, key=lambda steps: min(_count(steps, "bisect"), _count(steps, "follow")))


def search(opened: OpenedPair, plan: Plan, seed_id: int) -> Sequence[SearchStep]:
    """Search from a seed; return it and all that was looked at, unless it deviates itself."""
    image = opened.seeds.inputs[seed_id]
    outcome = _evaluate(opened, Query(image, opened.panel.arms))
    if plan.goal.met(outcome) is not None:
        return []
    steps = [SearchStep("seed", image, outcome)]
    rng = chain_generator(plan.rng_seed, seed_id)
    settled = describe_run(opened, plan).plan
    pool = domain_operators(opened.pair.interface.domain_name, settled.operators)
    bounds = settled.bounds(opened.pair.interface.domain.space)
    start = Start(image, outcome, plan.goal, rng, bounds, operators=pool)
    generator = Boundary().search(start)
    asked = next(generator)
    while len(steps) <= MOST:
        (query,) = asked
        stage, outcome = _stage(generator), _evaluate(opened, query)
        if query.again:
            before = steps.pop().outcome
            steps.append(
                SearchStep(stage, query.input, Outcome({**before.answers, **outcome.answers}))
            )
        else:
            steps.append(SearchStep(stage, query.input, outcome))
        try:
            asked = generator.send([outcome])
        except StopIteration:
            break
    return steps


def draw(steps: Sequence[SearchStep], classes: Sequence[str]) -> Figure:
    """Draw what was looked at, and how the margins of both arms went."""
    label = int(steps[0].outcome[Arm.ORIGINAL].scores.argmax())
    rows = -(-len(steps) // COLUMNS)
    figure = Figure(figsize=(11, 1.75 * rows + 2.6), layout="constrained")
    strip, trace = figure.subfigures(2, 1, height_ratios=[1.75 * rows, 2.6])
    panels = strip.subplots(rows, COLUMNS).flat
    for n, panel in enumerate(panels):
        panel.axis("off")
        if n < len(steps):
            _draw_image(panel, n, steps[n], label)
    strip.suptitle(_title(steps, classes), fontsize=11)
    _draw_margins(trace.subplots(), steps, label)
    return figure


def _draw_image(panel: Any, n: int, sight: SearchStep, label: int) -> None:
    panel.axis("on")
    panel.imshow(sight.image.squeeze(), cmap="gray", vmin=0, vmax=255)
    panel.set_xticks([])
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set(color=STAGES[sight.stage], linewidth=3)
    margins = (sight.margin(arm, label) for arm in (Arm.ORIGINAL, Arm.TWIN))
    panel.set_title(f"{n}  {sight.stage}" if n else "seed", fontsize=9, pad=3)
    panel.set_xlabel("  ".join(f"{margin:+.3f}" for margin in margins), fontsize=9, labelpad=2)


def _draw_margins(panel: Any, steps: Sequence[SearchStep], label: int) -> None:
    for n, sight in enumerate(steps):
        panel.axvspan(n - 0.5, n + 0.5, color=STAGES[sight.stage], alpha=0.15, linewidth=0)
    for arm, style in ((Arm.ORIGINAL, "ko-"), (Arm.TWIN, "rs--")):
        panel.plot([sight.margin(arm, label) for sight in steps], style, label=arm, markersize=4)
    panel.set_xticks(range(len(steps)))
    panel.axhline(0.0, color="black", linewidth=0.8)
    panel.set_yscale("symlog", linthresh=0.1)
    panel.set(xlabel="query", ylabel="margin of the seed's label", xlim=(-0.5, len(steps) - 0.5))
    panel.legend(loc="upper right", frameon=False)


def _title(steps: Sequence[SearchStep], classes: Sequence[str]) -> str:
    last = steps[-1].outcome.answers
    labels = ", ".join(f"{arm}: {_name(answer, classes)}" for arm, answer in last.items())
    return f"From a seed to a trigger ({labels}); below, the margins of original and twin"


def _name(answer: Answer, classes: Sequence[str]) -> str:
    return "–" if answer.decision is None else classes[answer.decision]


def _count(steps: Sequence[SearchStep], stage: str) -> int:
    return sum(sight.stage == stage for sight in steps)


def _evaluate(opened: OpenedPair, query: Query) -> Outcome:
    (evaluated,) = opened.panel.submit([query], [0]).collect()
    return evaluated.outcome


def _stage(generator: SearchGenerator) -> str:
    """Return the current stage of a search: the method that its generator has delegated to."""
    frame: Any = generator
    while frame is not None:
        if frame.gi_code.co_name in _STAGE_OF:
            return _STAGE_OF[frame.gi_code.co_name]
        frame = frame.gi_yieldfrom
    raise LookupError("the stages of `boundary` have other names now")


if __name__ == "__main__":
    main()
