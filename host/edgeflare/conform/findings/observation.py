"""One model of an operator that was run, as grouping sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgeflare.conform.specification.settings import Setting
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement


@dataclass(frozen=True, slots=True)
class Observation:
    """A model of one operator and what was said of it.

    Attributes:
        operator: its name in the schema.
        type: of the operator.
        settings: its configuration and the facts that follow from it, by name.
        judgement: what was said.

    """

    operator: str
    type: str
    settings: Mapping[str, Setting]
    judgement: KernelJudgement
