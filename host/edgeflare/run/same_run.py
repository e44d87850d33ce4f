"""Whether a run may be gone on with: it is about the same, and on hosts that answer alike."""

from __future__ import annotations

from edgeflare.errors import UserError
from edgeflare.run.run_differences import RunDifference, differences
from edgeflare.run.run_header import RunHeader


def require_same(
    begun: RunHeader,
    now: RunHeader,
    run: str,
    *,
    allow_other_host: bool = False,
) -> None:
    """Refuse to go on with a run that is about something else, or on another host.

    Args:
        begun: what run it is.
        now: what goes on with it.
        run: its name for messages.
        allow_other_host: whether the host may differ in what decides its answers.

    Raises:
        OtherHostError: the host differs.
        UserError: the pair, its folding, the plan or the kernels differ; names the first
            difference.

    """
    # Devices that are alike in what decides answers have a name each.
    ignored = {"--device"} if len(begun.devices) == len(now.devices) else set()
    for found in differences(begun, now, ignored):
        if found.of != "host":
            raise UserError(_refusal(found, begun, run))
        if not allow_other_host:
            raise OtherHostError(
                f"{run} was begun on another host, with {found.name} {found.one} there and"
                f" {found.other} here, which may change the answers of original and twin:"
                " start a new run"
            )


class OtherHostError(UserError):
    """A run is to be gone on with on a host that may answer differently from its first."""


def _refusal(found: RunDifference, begun: RunHeader, run: str) -> str:
    """Return why a run cannot be gone on with, and what can be done."""
    if found.of == "command":
        return (
            f"{run} holds a {found.one}, and no {found.other}: `edgeflare {found.one}` goes on with"
            " it; or name another folder with --out, and leave out --resume"
        )
    if found.of == "pair":
        return (
            f"{run} belongs to another pair ({begun.pair.name}, or other files or "
            "preprocessing): resume it with that pair, or name another folder with --out"
        )
    if found.of == "device" and found.name == "cpu_features":  # each side is what the other lacks
        return (
            f"{run} was begun on a device with other cpu_features, {found.one} there and"
            f" {found.other} on the one of now: start a new run"
        )
    if found.of == "device":
        return (
            f"{run} was begun on a device with {found.name} {found.one}, but the one of now has"
            f" {found.other}: start a new run"
        )
    if found.of == "folding" and found.name != "--fold-shapes":
        return (
            f"{run} was begun by an edgeflare that folds the model's shapes otherwise: start a"
            " new run"
        )
    how = (
        (found.one, found.name) if found.of == "folding" else ("with", f"{found.name} {found.one}")
    )
    return (
        f"{run} was begun {how[0]} {how[1]}, not {found.other}: repeat the command that began it,"
        " with --resume"
    )
