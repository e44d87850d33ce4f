"""The built-in methods of a repair: what they do to the file, and what they say of candidates.

What makes the candidates of each is planned in `candidate_plans`, and fitted by a module of its
own. Those of other packages are in `repair_method`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from edgeflare.record.json_types import Amount
from edgeflare.repair.precision_details import PrecisionDetails
from edgeflare.repair.shift_details import ShiftDetails

METHOD_HELP: Final = (
    "auto tries all of the following that the limits allow, and keeps the best: bias, ranges and"
    " rounding change the file in its place, equalization scales channels before these, rewrites"
    " gives tensors steps of their own, calibration quantizes the original anew, precision and"
    " weights-only compute in float, and learning moves weights and ranges towards the original's"
    " answers, behind others. shifts, the last and slowest, appends operators, and needs a RUN. By"
    " their names alone: dare tunes weights towards the original's layer before the last, fmt so"
    " that an attribute of --groups decides less. archrepair trains the float original by labels,"
    " and compresses it again."
)

Target = Literal["float", "int8-only"]
"""What the target computes: floats beside integers, or integers alone, as some accelerators do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodKind:
    """What a method needs, and what it does to the file.

    Attributes:
        in_place: whether the file keeps its length, its operators and their order.
        integers: whether nothing is computed in float that was not before.
        fitted: whether it is fitted to the original's weights, and not to a run or a table.
        automatic: whether "auto" tries it.
        differentiates: whether it needs jax.

    """

    in_place: bool
    integers: bool
    fitted: bool = True
    automatic: bool = True
    differentiates: bool = False


_IN_PLACE: Final = MethodKind(in_place=True, integers=True)
_REWRITTEN: Final = MethodKind(in_place=False, integers=False)

METHODS: Final[Mapping[str, MethodKind]] = {
    "shifts": MethodKind(in_place=False, integers=False, fitted=False),
    "ranges": _IN_PLACE,
    "rounding": _IN_PLACE,
    "bias": _IN_PLACE,
    "equalization": _IN_PLACE,
    "rewrites": MethodKind(in_place=False, integers=True),
    "calibration": MethodKind(in_place=False, integers=True),
    "precision": _REWRITTEN,
    "weights-only": _REWRITTEN,
    "learning": MethodKind(in_place=True, integers=True, differentiates=True),
    "dare": MethodKind(in_place=True, integers=True, automatic=False, differentiates=True),
    "fmt": MethodKind(
        in_place=True, integers=True, fitted=False, automatic=False, differentiates=True
    ),
    "archrepair": MethodKind(
        in_place=False, integers=True, fitted=False, automatic=False, differentiates=True
    ),
}


class CandidateDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What methods say of their candidates, by section.

    Attributes:
        rewrites: operators that were rewritten.
        precision: what the search for precision found.
        shifts: what a repair by shifts says of itself.

    """

    rewrites: RewriteDetails | None = None
    precision: PrecisionDetails | None = None
    shifts: ShiftDetails | None = None


NO_DETAILS: Final = CandidateDetails()
"""Details of a candidate of which its method says nothing."""


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """An operator that forced one step on unlike values, and what frees them.

    Attributes:
        operator: the operator, as `explain` names layers.
        by: what computes in its place (MEAN), or what was put in front of it (QUANTIZE).
        tensor: name of the tensor that has steps of its own now.
        step_before: size of a step of that tensor before.
        step_after: size of a step of that tensor now.

    """

    operator: str
    by: Literal["MEAN", "QUANTIZE"]
    tensor: str
    step_before: Amount
    step_after: Amount


class RewriteDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What was rewritten in a candidate.

    Attributes:
        rewrites: the operators, in execution order.

    """

    rewrites: tuple[Rewrite, ...]
