"""What a command would do, in lines for a dry run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.text import Text

from edgeflare.campaign.dry_run import DryRun
from edgeflare.pages.facts import count_of
from edgeflare.report.arm_lines import device_numbers, folded_line, taken_nodes
from edgeflare.report.interface_lines import interface_lines
from edgeflare.report.run_figures import harms_in_words, refinement_bound, systematic_lines
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_warnings import undelegated
from edgeflare.untrusted_text import printable


def print_dry_run(
    console: Console, header: RunHeader, look: DryRun, seeds: int, doing: str, notes: Sequence[str]
) -> None:
    """Print what a search would do, how inputs are read, and what the first seeds show of that."""
    plan = header.plan
    total = "no bound" if plan.total_queries is None else f"{plan.total_queries:,}"
    lines = [
        f"{count_of(seeds, 'seed')}, at most {count_of(plan.max_queries, 'query', 'queries')} and"
        f" {plan.max_time_seconds:g} s"
        " for each; "
        f"queries for all together: {total}",
        refinement_bound(plan, seeds),
        f"ties of mutants {'count' if plan.goal.ties else 'do not count'}, "
        f"within {'any distance' if plan.within_db is None else f'{plan.within_db:g} dB'}, "
        f"least strength {plan.min_strength:g}",
        *interface_lines(header),
        *looked_lines(look),
        f"would {doing}; nothing was written",
        *(f"warning: {note}" for note in (*notes, *look.warnings, *undelegated(header.devices))),
    ]
    console.print(Group(heading(header), *map(Text, lines)))


def heading(header: RunHeader) -> Text:
    """Return what would run where."""
    pair, plan, devices = header.pair, header.plan, header.devices
    text = Text()
    text.append(printable(pair.name), style="bold")
    text.append(f" · {plan.strategy} · find {plan.goal.find} · run seed {plan.rng_seed}")
    numbers = device_numbers(devices)
    for device in devices:
        name, what = device.name, device.provenance
        text.append(
            f"\n{numbers[name] + ' ' if numbers else ''}{name}: {what.machine}, "
            f"{what.runtime} {what.runtime_version}, {what.kernels} kernels "
            f"({taken_nodes(what)}), "
            f"{what.threads} thread{'s' if what.threads != 1 else ''}"
        )
        if what.cache:
            text.append(f"\nagent and models stay on {name} in {what.cache}")
    if folded := folded_line(pair):
        text.append(f"\n{folded}")
    return text


def looked_lines(look: DryRun, noun: str = "seed") -> list[str]:
    """Return how often the arms are right, where labels are known, and how often they differ.

    Args:
        look: what the first inputs show.
        noun: what one of these is called.

    """
    lines = list(map(printable, look.given))
    first = f"the first {count_of(look.seeds, noun)}"
    if look.labelled:
        shares = ", ".join(f"{arm} {n / look.labelled:.1%}" for arm, n in look.right.items())
        truths = "have targets" if look.truth_measure else "are labelled"
        lines.append(f"of {first} {look.labelled} {truths}; right on them: {shares}")
    if look.distance:
        means = ", ".join(f"{arm} {mean:.4g}" for arm, mean in look.distance.items())
        lines.append(f"{look.truth_measure} on them, on average: {means}")
    ties = f", {look.by_tie} of them by a tie" if look.deviating else ""
    harm = f": {harms_in_words(look.harm)}" if look.harm else ""
    lines.append(f"{look.deviating} of {first} already deviate{ties}{harm}")
    lines += [look.apart] if look.apart else []
    lines += [printable(f"{name}: {line}") for name, line in systematic_lines(look.systematic)]
    lines += map(printable, look.answers)
    if look.without_reset is not None:
        lines.append(f"without a reset of the variables {look.without_reset.in_words(noun)}")
    return [*lines, *(() if look.stages is None else look.stages.lines())]
