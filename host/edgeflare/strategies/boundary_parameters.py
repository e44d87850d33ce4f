"""The parameters of boundary bisection, in the order of its stages.

Unless a description says otherwise, the defaults were measured on lenet5 and lenet4 (int8, original
against twin), and are reported on the other pairs. Margins are differences of scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from edgeflare.core.goal import Find
from edgeflare.errors import UserError
from edgeflare.strategies.strategy import Strategy
from edgeflare.strategies.strategy_parameters import parameter

_MOST_MUTATIONS: Final = 1000
"""Mutations in a row, between which no wish to stop is heeded."""


@dataclass(frozen=True)
class BoundaryParameters(Strategy):
    """The parameters that `boundary` and its ablation share."""

    needs_choices = True
    reads_other_seeds = frozenset({Find.ANY})

    first_leap: int = parameter(
        10,
        "Mutations in the first leap, doubled while the decision holds. A search takes 16 and 20"
        " queries on the mean with 10, 16 and 18 with 8, and 20 and 23 with 1.",
        at_least=1,
        at_most=_MOST_MUTATIONS,
    )
    longest_leap: int = parameter(
        64,
        "Mutations in one leap at most; more hardly change an input further.",
        at_least=1,
        at_most=_MOST_MUTATIONS,
    )
    max_leaps: int = parameter(
        6,
        "Leaps in one attempt before the search descends instead. A leap more costs a query, a"
        " descent 10 to 14: with 4, twice as many searches descend.",
        at_least=1,
    )
    shortening_grid: int = parameter(
        2,
        "Blocks along each axis of the input's cells, by which a leap that changed the decision is"
        " shortened: each block is weighted by what it does to the margin for its length, and those"
        " behind the one that changes the decision are left out. 2 cost up to 3 queries and shorten"
        " the way to the boundary by a third; 4 halve it, but cost more queries than the rest of"
        " the search. 1 bisects the leap as it is, and costs none.",
        at_least=1,
        at_most=32,
    )
    guess_overshoot: float = parameter(
        1.2,
        "Factor by which the first query of a shortened leap goes beyond the place where the margin"
        " should be 0: to have both sides of the boundary early. On ResNet-20 it saves a third of a"
        " query.",
        at_least=1.0,
    )
    descent_grid: int = parameter(
        3,
        "The same for a descent: for the few seeds from which no leap within the bounds changes the"
        " decision.",
        at_least=1,
        at_most=32,
    )
    max_descents: int = parameter(
        6,
        "Directions of descent that one attempt takes at most; a descent costs up to 84 queries"
        " in all.",
        at_least=1,
    )
    max_descent_steps: int = parameter(
        4, "Steps along one direction of descent at most.", at_least=1
    )
    descent_overshoot: float = parameter(
        1.1,
        "Factor by which a step aims beyond the place where the margin should be 0, so that it"
        " changes the decision in spite of rounding.",
        at_least=1.0,
    )
    max_extension: float = parameter(
        2.5,
        "Factor by which one step extends the previous one at most: the margin is only locally"
        " linear.",
        above=1.0,
    )
    blind_extension: float = parameter(
        2.0,
        "Factor by which a step extends the previous one where the margin did not fall.",
        above=1.0,
    )
    max_shortened_length: float = parameter(
        0.95,
        "Length of the shortened direction as a share of the leap's, above which the leap itself is"
        " bisected: it is known to cross the boundary.",
        above=0.0,
        at_most=1.0,
    )
    boundary_tolerance: float = parameter(
        0.15,
        "Margin below which an input counts as on the boundary. Int8 LeNets resolve 0.17.",
        above=0.0,
    )
    max_bisections: int = parameter(12, "Queries of one bisection at most.", at_least=1)
    halving_interval: int = parameter(
        3,
        "Every so many queries a bisection takes the middle instead of interpolating the margin,"
        " which is not linear.",
        at_least=1,
    )
    max_margin_ratio: float = parameter(
        8.0,
        "Ratio of the margins before and behind the boundary that interpolation takes at most: the"
        " scores of saturated probabilities are far apart.",
        above=0.0,
    )
    min_interpolation: float = parameter(
        1 / 12,
        "Share of the interval that interpolation keeps from either end.",
        above=0.0,
        at_most=0.5,
    )
    step_length: float = parameter(
        0.005,
        "Length of a step along the boundary, as a share of the distance from the seed. 8-bit"
        " models have to be met at another rounding of their outputs, and twice this loses the"
        " boundary more often.",
        above=0.0,
    )
    step_growth: float = parameter(
        0.5,
        "By how much of `step_length` the steps grow with each failed attempt: where short steps"
        " found nothing, longer ones do sooner.",
        at_least=0.0,
    )
    max_step_growth: float = parameter(
        3.0,
        "Factor by which steps are longer than `step_length` at most. Together with the descents"
        " this shortens the tail a little: of 6,000 searches on lenet4 and lenet1, on which these"
        " were chosen, the worst took 352 queries and not 378.",
        at_least=1.0,
    )
    direction_mutations: int = parameter(
        4,
        "Mutations whose change gives the direction of the steps.",
        at_least=1,
        at_most=_MOST_MUTATIONS,
    )
    steps_per_direction: int = parameter(
        10, "Steps in one direction before another one is drawn.", at_least=1
    )
    max_steps: int = parameter(30, "Steps along one boundary before leaping anew.", at_least=1)
    max_correction: float = parameter(
        0.05,
        "Share of the distance from the seed by which one step is corrected towards the boundary or"
        " away from it at most: the margin's slope is not the same everywhere.",
        above=0.0,
    )
    level_stride: float = parameter(
        0.03,
        "By how much a step moves the level of the two best scores where the second arm ties: the"
        " noise of an int8 LeNet's scores, of which five to six make a step of its outputs.",
        at_least=0.0,
    )
    max_stride: float = parameter(
        5.0,
        "Factor by which such a step is longer than `step_length` at most; with 15 the margin is"
        " off more often.",
        at_least=1.0,
    )
    level_margin: float = parameter(
        0.06,
        "Margin of the first arm within which it says something about the level that the second arm"
        " is tied or not.",
        above=0.0,
    )
    hold_steps: int = parameter(
        5, "Steps that the level is kept for after the second arm was not tied.", at_least=0
    )
    gap_prior: int = parameter(
        3,
        "Weight, in steps, of the assumption that the two arms' margins are equal; it is averaged"
        " with the differences that were seen.",
        at_least=0,
    )
    lost_margin: float = parameter(
        0.4, "Margin above which a step counts as off the boundary.", above=0.0
    )
    max_lost_steps: int = parameter(
        3, "Steps in a row off the boundary before leaping anew.", at_least=1
    )
    push_margin: float = parameter(
        0.12,
        "Margin of the first arm within which it is pushed across its boundary, where the second"
        " arm is not tied.",
        at_least=0.0,
    )
    push_target: float = parameter(
        0.007,
        "Margin behind the boundary at which a push aims: .015 makes findings stronger and takes"
        " half a query more.",
        at_least=0.0,
    )
    max_pushes: int = parameter(2, "Pushes in a row at most.", at_least=0)
    weak_margin: float = parameter(
        0.01,
        "Margin of the first arm within which a deviation on the boundary is a weak one, and a"
        " further query tries to find a stronger one. It takes .4 queries, and makes findings on"
        " int8 LeNets stronger by a fifth; .02 takes .7.",
        at_least=0.0,
    )
    deeper_target: float = parameter(
        0.03,
        "Margin behind the boundary at which that query aims; .05 finds fewer.",
        at_least=0.0,
    )
    pair_probes: int = parameter(
        12,
        "Inputs around a near-tie of which one has to be decided otherwise by the twin, so that the"
        " device is asked, where kernels are compared and no ensemble foretells the device.",
        at_least=1,
    )
    pair_share: float = parameter(
        0.05,
        "Share of their values by which they differ from it, each by one level. With 0.015 and with"
        " 0.1 a finding on an int8 LeNet-5 takes more queries.",
        above=0.0,
        at_most=1.0,
    )
    max_lone_ties: int = parameter(
        8,
        "Near-ties in a row without such an input, of which the last is asked about by itself: a"
        " twin need not change its decision without a tie.",
        at_least=1,
    )

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            UserError: one is not of its type or bounds, or the first leap exceeds the longest.

        """
        super().__post_init__()
        if self.first_leap > self.longest_leap:
            raise UserError(
                f"parameter first_leap={self.first_leap}: expected at most longest_leap, which is"
                f" {self.longest_leap}"
            )
