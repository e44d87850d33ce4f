"""A candidate of a repair: a file that may take the place of the compressed model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from edgeflare.errors import EdgeFlareError
from edgeflare.repair.candidate_details import NO_DETAILS, CandidateDetails
from edgeflare.repair.fitting.float_model import Recipe

ReportProgress = Callable[[str, int, int], None]
"""Is called with the name of a step, how much of it is done, and how much there is; may raise
`EnoughTried`."""

StepProgress = Callable[[int, int], None]
"""Is called, within one step, with how much of it is done, and how much there is."""


PLAIN_NAME: Final = re.compile(r"[\w+-]+", re.ASCII)
"""What candidates and their plans may be called, since files are."""


@dataclass(frozen=True, slots=True)
class RepairCandidate:
    """A repaired model that may be chosen.

    Attributes:
        name: name of its plan; where that makes several, each has a name of its own.
        content: `.tflite` file of the candidate.
        recipe: what the quantizer made it by; None where the file was changed in place.
        details: what its method says of it.
        files: what is written beside it where it is chosen, by the name of the file.
        in_place: whether numbers of the model before are all that was changed: what runs that runs
            this, and no kernel set of the host has to be asked.

    """

    name: str
    content: bytes
    recipe: Recipe | None
    details: CandidateDetails = NO_DETAILS
    files: Mapping[str, bytes] = field(default_factory=dict)
    in_place: bool = False


class NoCandidate(EdgeFlareError):  # noqa: N818 - an outcome, no error of the user or the host
    """A method gains nothing, so that it has no candidate.

    Attributes:
        details: as those of a candidate.

    """

    def __init__(self, why: str, details: CandidateDetails) -> None:
        super().__init__(why)
        self.details = details


class EnoughTried(Exception):  # noqa: N818 - a wish, no error
    """No further candidate is to be tried: the best of those that were is chosen."""


class Effort(IntEnum):
    """How long candidates take to fit; those that take least are tried first."""

    FIRST = 0
    """What is tried before all else, since it mends what is known to be coarse."""
    SECONDS = 1
    ROUNDING = 2
    """Weights are rounded by what their layers read."""
    SEARCH = 3
    """Files are made and measured by the hundred."""
    GRADIENTS = 4
    UNKNOWN = 5
    """What other packages bring."""


@dataclass(frozen=True, slots=True)
class CandidatePlan:
    """How one candidate or several are made.

    Attributes:
        name: name of its candidate, the steps joined by "+", or of what makes several.
        method: the method that they are candidates of.
        make: makes them; raises a `UserError` where the models or the inputs do not allow it, and
            `NoCandidate` where nothing is gained.
        effort: how long that takes.
        instead_of: the method in whose place "auto" tries this plan, where none of its candidates
            has a score below 1 within the limits; None where the plan is always tried, as where
            that method is not asked for.

    """

    name: str
    method: str
    make: Callable[[StepProgress], Sequence[RepairCandidate]]
    effort: Effort = Effort.SECONDS
    instead_of: str | None = None
