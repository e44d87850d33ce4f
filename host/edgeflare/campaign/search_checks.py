"""Checks that a search can be made on an opened pair, before anything of it is written."""

from __future__ import annotations

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.domain import Domain
from edgeflare.core.goal import Find
from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.run.plan import Plan
from edgeflare.strategies.operator_pool import domain_operators, pool_names
from edgeflare.strategies.strategy_registry import RegisteredStrategy, find_strategy
from edgeflare_operators import MutationOperator, OperatorError


def require_searchable(opened: OpenedPair, plan: Plan) -> None:
    """Refuse a search whose strategy, operators or bounds the pair has nothing for.

    Args:
        opened: the pair.
        plan: plan of the search, settled or not.

    Raises:
        UserError: the strategy needs decisions, operators or gradients that there are not, a
            library that one of them needs is not installed, or the inputs have no distance to be
            bounded.

    """
    domain = opened.pair.interface.domain
    strategy = find_strategy(plan.strategy)
    strategy.require_choices(opened.panel.reading.decoders[Arm.DEVICE].chooses)
    strategy.require_paper_operators(domain.name, domain.paper_operators())
    for operator in _drawn(strategy, domain, plan):
        try:
            operator.require()
        except OperatorError as error:
            raise UserError(str(error)) from error
    _require_bounds(domain, plan)
    made = strategy.create(plan.parameters)
    strategy.require(made, opened.seeds.inputs[0])
    if made.needs_gradients:
        _require_gradients(strategy.name, opened, plan, neurons=made.needs_neurons)
    elif plan.shrink and plan.shrink_by == "gradient":
        _require_translations(opened, "--shrink-by queries", neurons=False)


def _require_gradients(strategy: str, opened: OpenedPair, plan: Plan, *, neurons: bool) -> None:
    """Refuse gradients of kernels, and of models that have none."""
    if plan.goal.find is Find.KERNEL:
        raise UserError(
            f"--find kernel: the strategy {strategy} follows gradients, and both models compute the"
            " same function but for their kernels, of which no gradient knows: say --strategy"
            " boundary"
        )
    _require_translations(opened, "the strategy boundary", neurons=neurons)


def _require_translations(opened: OpenedPair, instead: str, *, neurons: bool) -> None:
    """Refuse models that cannot be differentiated; say what needs no gradient instead."""
    try:
        opened.white_box.open().rehearse(opened.seeds.inputs[0], neurons=neurons)
    except UserError as error:
        raise UserError(f"{error}; or take {instead}, which needs no gradient") from None


def _drawn(strategy: RegisteredStrategy, domain: Domain, plan: Plan) -> list[MutationOperator]:
    """Return the operators that a search may draw."""
    if strategy.strategy.needs_paper_operators:
        return [*domain.paper_operators(), *domain.published_operators()]
    if not strategy.strategy.draws_from_pool:
        return []
    pool = domain_operators(domain.name, pool_names(domain.name, plan.operators))
    if not pool:
        raise UserError(
            f"the strategy {strategy.name} needs operators, and EdgeFlare has none for the domain"
            f" {domain.name}: say --operators all, or name those of the package that brings it"
        )
    return list(pool)


def _require_bounds(domain: Domain, plan: Plan) -> None:
    """Refuse bounds of the change of values that are no quantities."""
    for option, bound in (("--max-linf", plan.max_linf), ("--max-l2", plan.max_l2)):
        if isinstance(bound, (int, float)) and not domain.space.ordered:
            raise UserError(
                f"{option} {bound:g}: values of the domain {domain.name} are names and no"
                " quantities, so their change has no size: leave the option out, or bound the"
                " distance with --within"
            )
