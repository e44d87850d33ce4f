"""A pair with the file that its device has: the user's own, or that with its shapes folded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import FoldedFile, Pair
from edgeflare.models.shape_folding import fold_shapes
from edgeflare.models.temporary_model import temporary_model


@contextmanager
def with_shapes_folded(pair: Pair) -> Iterator[Pair]:
    """Fold the shapes of a pair's compressed model, if the pair says so.

    The file lies in a temporary folder for as long as this is open; it is the same for the same
    model, so it is made anew whenever a run is opened. Errors name the user's own file.

    Args:
        pair: a pair that is not opened yet.

    Yields:
        The pair, in which `executed` is the file to run.

    Raises:
        UserError: see `fold_shapes`.
        InfrastructureError: no worker process can be started.

    """
    if not pair.fold_shapes:
        yield pair
        return
    content, name = read_model_file(pair.compressed), str(pair.compressed)
    folding = fold_shapes(content, name, pair.interface.invocation)
    sha256 = hashlib.sha256(folding.content).hexdigest()
    stem, called = f"{pair.compressed.stem}-folded", f"{name} with its shapes folded"
    with temporary_model(folding.content, stem, called) as path:
        yield replace(pair, folded=FoldedFile(path, sha256, folding.operators))
