"""Make the pictures of docs/search/boundary.md: how a trigger is found from a seed of an example.

.venv/bin/python docs/pictures/search.py                                 (needs the extra `plots`)
.venv/bin/python docs/pictures/search.py --example face_detection
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from edgeflare.campaign.campaign_record import describe_run
from edgeflare.campaign.chain import chain_generator
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome, Query
from edgeflare.core.task import Decoder
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.models.pair import load_pair
from edgeflare.pages.answers.boxes import DetectionView
from edgeflare.run.plan import Plan
from edgeflare.strategies.boundary import Boundary
from edgeflare.strategies.operator_pool import domain_operators
from edgeflare.strategies.strategy import SearchGenerator, Start

EXAMPLES = Path(__file__).parents[2] / "examples"
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

STYLES = {Arm.ORIGINAL: ("black", "-", "o"), Arm.TWIN: ("red", "--", "s")}
"""How each arm is drawn: its margins, and the boxes that it detects."""

_STAGE_OF = {
    "_leap": "leap",
    "_descend": "descend",
    "_shorten": "weigh",
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

    def margin(self, arm: Arm, home: Answer) -> float:
        """Return how far an arm is from deciding otherwise than another answer."""
        return self.outcome[arm].margin(home)


def main() -> None:
    """Read the command line, and write the picture."""
    parser = argparse.ArgumentParser(description="Make a picture of a search.")
    parser.add_argument("--first", type=int, default=40, help="seeds to choose from")
    parser.add_argument("--example", default="fashion_lenet4", help="a folder of examples/")
    parser.add_argument("--out", type=Path, help="by default beside this file")
    options = parser.parse_args()
    name = "search" if options.example == "fashion_lenet4" else f"search_{options.example}"
    out = options.out or Path(__file__).with_name(f"{name}.png")
    goal = Goal(Find.ANY)
    plan = Plan("boundary", goal, (DEVICE,), first=options.first)
    with ExitStack() as stack:
        pair = load_pair(EXAMPLES / options.example)
        opened = open_pair(pair, plan, [find_profile(DEVICE)], stack)
        seed_ids = range(len(opened.seeds))
        steps = most_telling(search(opened, plan, seed_id) for seed_id in seed_ids)
        decoder = opened.panel.reading.decoders[Arm.ORIGINAL]
    figure = draw(steps, decoder, pair.classes)
    figure.savefig(out, dpi=100, metadata={"Software": None})


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


def draw(steps: Sequence[SearchStep], decoder: Decoder, classes: Sequence[str]) -> Figure:
    """Draw what was looked at, and how the margins of both arms went."""
    home = steps[0].outcome[Arm.ORIGINAL]
    rows = -(-len(steps) // COLUMNS)
    figure = Figure(figsize=(11, 1.75 * rows + 2.6), layout="constrained")
    strip, trace = figure.subfigures(2, 1, height_ratios=[1.75 * rows, 2.6])
    panels = strip.subplots(rows, COLUMNS).flat
    for n, panel in enumerate(panels):
        panel.axis("off")
        if n < len(steps):
            _draw_image(panel, n, steps[n], home)
            _draw_boxes(panel, steps[n], decoder)
    strip.suptitle(_title(steps, decoder, classes), fontsize=11)
    _draw_margins(trace.subplots(), steps, home)
    return figure


def _draw_image(panel: Any, n: int, sight: SearchStep, home: Answer) -> None:
    panel.axis("on")
    panel.imshow(sight.image.squeeze(), cmap="gray", vmin=0, vmax=255)
    panel.set_xticks([])
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set(color=STAGES[sight.stage], linewidth=3)
    margins = (sight.margin(arm, home) for arm in STYLES)
    panel.set_title(f"{n}  {sight.stage}" if n else "seed", fontsize=9, pad=3)
    panel.set_xlabel("  ".join(f"{margin:+.3f}" for margin in margins), fontsize=9, labelpad=2)


def _draw_boxes(panel: Any, sight: SearchStep, decoder: Decoder) -> None:
    """Draw the objects that each arm detects, where the task detects some."""
    answers = {arm.value: sight.outcome[arm] for arm in STYLES}
    rows, columns = sight.image.shape[:2]
    for view in decoder.views(answers, (Arm.ORIGINAL.value, Arm.TWIN.value)):
        if not isinstance(view, DetectionView):
            continue
        for arm, (color, line, _) in STYLES.items():
            for shown in view.boxes[arm.value] or ():
                left, top, right, bottom = shown.box
                corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
                panel.plot(
                    [x * columns for x, _ in corners],
                    [y * rows for _, y in corners],
                    color=color,
                    linestyle=line,
                    linewidth=1.5,
                )
    panel.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))


def _draw_margins(panel: Any, steps: Sequence[SearchStep], home: Answer) -> None:
    for n, sight in enumerate(steps):
        panel.axvspan(n - 0.5, n + 0.5, color=STAGES[sight.stage], alpha=0.15, linewidth=0)
    for arm, (color, line, marker) in STYLES.items():
        margins = [sight.margin(arm, home) for sight in steps]
        panel.plot(margins, marker + line, color=color, label=arm, markersize=4)
    panel.set_xticks(range(len(steps)))
    panel.axhline(0.0, color="black", linewidth=0.8)
    panel.set_yscale("symlog", linthresh=0.1)
    panel.set(xlabel="query", ylabel="margin of the seed's decision", xlim=(-0.5, len(steps) - 0.5))
    panel.legend(loc="upper right", frameon=False)


def _title(steps: Sequence[SearchStep], decoder: Decoder, classes: Sequence[str]) -> str:
    last = steps[-1].outcome.answers
    said = ", ".join(f"{arm}: {decoder.describe_answer(one, classes)}" for arm, one in last.items())
    return f"From a seed to a trigger ({said}); below, the margins of original and twin"


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
