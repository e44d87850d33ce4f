"""Settings of `edgeflare repair` that do not go together."""

from __future__ import annotations

from edgeflare.errors import UserError
from edgeflare.repair.repair_request import RepairRequest


def require_learning_settings(
    request: RepairRequest, *, pair: bool, again: bool, resume: bool
) -> None:
    """Refuse settings of methods that learn where none of these is asked for.

    Args:
        request: what is asked.
        pair: whether a pair is named, and no run.
        again: whether the repaired model is to be searched.
        resume: whether a repair is to go on.

    Raises:
        UserError: one does not go with another.

    """
    method = request.method
    if request.slice is not None and method not in ("dare", "fmt"):
        raise UserError("--slice is a setting of --method dare and fmt: name one, or leave it away")
    if method == "fmt" and not request.groups:
        raise UserError(
            "--method fmt needs --groups, the columns of the attribute that is to decide less, such"
            " as --groups 8"
        )
    if request.checkpoints:
        if method != "dare" or again or not pair:
            raise UserError(
                "--checkpoints are for a pair, by --method dare, without --search-again"
            )
        if request.robustness:
            raise UserError("--robustness: a repair by --checkpoints is attacked anyway: leave it")
    by_labels = request.by_labels
    if resume and by_labels in ("--groups", "--checkpoints"):
        raise UserError(f"--resume: a repair by {by_labels} stores nothing to go on with: leave it")
    if request.groups and (method not in ("auto", "fmt") or again or not pair):
        raise UserError("--groups is for a pair, by --method fmt or auto, without --search-again")
    if request.groups and request.robustness:
        raise UserError(
            "--robustness attacks what deviates less, not what --groups mends: leave it"
        )


def require_architecture_settings(
    request: RepairRequest, *, pair: bool, again: bool, resume: bool
) -> None:
    """Refuse settings of archrepair where it is not asked for, and those that it does not have.

    Args: as of `require_learning_settings`.

    Raises:
        UserError: one does not go with another.

    """
    if request.method != "archrepair":
        if request.steps is not None or request.suspects is not None:
            raise UserError(
                "--steps and --suspects are settings of --method archrepair: name it, or leave them"
                " away"
            )
        return
    unknown = {
        "--resume": resume,
        "--robustness": request.robustness,
        "--in-place": request.in_place,
    }
    if named := [option for option, given in unknown.items() if given]:
        raise UserError(f"--method archrepair does not go with {', '.join(named)}: leave it away")
    if again or not pair:
        raise UserError("--method archrepair is for a pair, without --search-again")
