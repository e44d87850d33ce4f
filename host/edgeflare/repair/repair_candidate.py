"""A candidate of a repair: a file that may take the place of the compressed model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from edgeflare.errors import EdgeFlareError
from edgeflare.repair.builtin_methods import NO_DETAILS, CandidateDetails
from edgeflare.repair.fitting.float_model import Recipe

ReportProgress = Callable[[str, int, int], None]
"""Is called with the name of a step, how much of it is done, and how much there is; may raise
`EnoughTried`."""

StepProgress = Callable[[int, int], None]
"""Is called, within one step, with how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class RepairCandidate:
    """A repaired model that may be chosen.

    Attributes:
        name: name of its plan; where that makes several, each has a name of its own.
        content: `.tflite` file of the candidate.
        recipe: what the quantizer made it by; None where the file was changed in place.
        details: what its method says of it.
        files: what is written beside it where it is chosen, by the name of the file.

    """

    name: str
    content: bytes
    recipe: Recipe | None
    details: CandidateDetails = NO_DETAILS
    files: Mapping[str, bytes] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True)
class CandidateMaker:
    """What makes the candidates of a plan.

    Attributes:
        name: name of the plan.
        method: the method that they are candidates of.
        make: makes them; raises a `UserError` where the models or the inputs do not allow it, and
            `NoCandidate` where nothing is gained.
        instead_of: see `CandidatePlan`.

    """

    name: str
    method: str
    make: Callable[[StepProgress], Sequence[RepairCandidate]]
    instead_of: str | None = None
