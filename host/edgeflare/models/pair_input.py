"""One input of a pair's models, as `pair.toml` describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edgeflare.core.domain import Domain
from edgeflare.domains.domain_registry import find_domain
from edgeflare.models.run_pair import DEFAULT_DOMAIN, InputDescription


@dataclass(frozen=True, slots=True)
class PairInput:
    """One input of a pair's models.

    Attributes:
        name: as the pair calls it; empty where the models have one only, without a table of its
            own.
        domain: name of its domain.
        settings: what the domain is constructed with, as plain JSON values.
        tensor: what the models call it; empty where that is its name, or it is found by its shape.
        array: the name of its array in an `.npz` of seeds; empty where that is its name, or that of
            its domain's arrays.
        search: whether the search may change it.
        opened_domain: the domain itself.

    """

    name: str
    domain: str = DEFAULT_DOMAIN
    settings: Mapping[str, Any] = field(default_factory=dict)
    tensor: str = ""
    array: str = ""
    search: bool = True
    opened_domain: Domain = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Construct the domain.

        Raises:
            UserError: there is none of the name, or it does not take the settings.

        """
        where = f"[inputs.{self.name}]" if self.name else f"domain {self.domain}"
        object.__setattr__(self, "opened_domain", find_domain(self.domain, self.settings, where))

    @property
    def tensor_name(self) -> str:
        """What the models call it, if they call it as the pair says."""
        return self.tensor or self.name

    def described(self) -> InputDescription:
        """Return what a run keeps of it."""
        return InputDescription(
            name=self.name,
            domain=self.domain,
            settings=self.settings,
            tensor=self.tensor,
            array=self.array,
            search=self.search,
        )
