"""What a survey's journal is told of its conditions: what each name stands for, and whose it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.conditions.condition_registry import package_of


@dataclass(frozen=True, slots=True)
class NotedCondition:
    """What a name in a survey stands for.

    Attributes:
        condition: the condition's own name; a file may give it another one.
        sets: that it belongs to.
        package: name and version of the package of others that brings it; empty for ours, whose
            version the journal has anyway.

    """

    condition: str
    sets: tuple[str, ...] = ()
    package: str = ""

    def words(self, name: str) -> str:
        """Return the name, with what it stands for where that does not go without saying."""
        condition = "" if name == self.condition else self.condition
        whose = f"of {self.package}" if self.package else ""
        said = " ".join(filter(None, (condition, whose)))
        return f"{name} ({said})" if said else name


def noted_conditions(chosen: Sequence[ChosenCondition]) -> dict[str, NotedCondition]:
    """Return what is noted of chosen conditions, by the names that they have in the survey.

    Raises:
        UserError: edgeflare is not installed.

    """
    return {
        one.name: NotedCondition(one.condition.name, one.condition.sets, package_of(one.condition))
        for one in chosen
    }


def noted_sets(conditions: Mapping[str, NotedCondition]) -> dict[str, frozenset[str]]:
    """Return the names that noted conditions have in a survey, by the sets that they are of."""
    names = {name for one in conditions.values() for name in one.sets}
    return {
        name: frozenset(at for at, one in conditions.items() if name in one.sets) for name in names
    }
