"""The inputs of an entry as they were stored, in the form in which their domain shows them."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.core.views import InputView
from edgeflare.models.run_pair import RunPair
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding
from edgeflare.run.run_header import run_domain


@dataclass(frozen=True, slots=True)
class StoredView:
    """One stored input of an entry.

    Attributes:
        what: "seed", "before" (the trigger before refinement) or "trigger"; or "input", as it came.
        file: path relative to the run directory.
        view: how it is shown; None if its file is gone or damaged.

    """

    what: str
    file: str
    view: InputView | None


def stored_views(directory: RunDirectory, entry: Finding, pair: RunPair) -> tuple[StoredView, ...]:
    """Return an entry's inputs: seed, trigger, and what was before refinement between them.

    A seed that deviates itself is the only one.

    Args:
        directory: where the files are.
        entry: entry whose inputs are viewed.
        pair: pair in the run's document, which says their domain.

    Raises:
        UserError: a name leads out of the run directory, or there is no such domain.

    """
    domain = run_domain(pair)

    def one(what: str, name: str) -> StoredView:
        try:
            data = directory.read(name)
        except OSError:
            return StoredView(what, name, None)
        return StoredView(what, name, domain.view_file(data))

    if entry.seed_file == entry.file or entry.distortion.linf == 0:
        return (one("seed", entry.seed_file),)
    before = [one("before", entry.refined.file_before)] if entry.refined else []
    return (one("seed", entry.seed_file), *before, one("trigger", entry.file))
