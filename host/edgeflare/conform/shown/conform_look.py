"""What a conformance run would do, said without doing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from edgeflare.conform.record.conform_document import ModelCoverage
from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.conform.shown.conform_words import cells_of, count_of, tried_words, untried_words
from edgeflare.untrusted_text import printable


def look_lines(header: ConformHeader, model: ModelCoverage | None, path: Path) -> Iterator[str]:
    """Yield what a run would do.

    Args:
        header: what run it would be.
        model: what is known of the model that the user named; None for none.
        path: of the run directory.

    """
    request, device = header.request, header.device
    yield printable(
        f"{device.name}: {device.runtime} {device.runtime_version},"
        f" {device.kernels} kernels, beside {header.host_runtime} on the host"
    )
    operators = {operator for operator, _ in request.cells}
    types = Counter(type_ for _, type_ in request.cells)
    told = ", ".join(f"{count} in {type_}" for type_, count in types.most_common())
    yield f"{count_of(len(operators), 'operator')}, {cells_of(len(request.cells))}: {told}"
    if model is not None:
        yield printable(_model_line(model, request.models))
        yield printable(f"  {tried_words(model, 'can be')}")
        for one in model.untried:
            yield printable(f"  not tried: {untried_words(one, model.arithmetic)}")
    ends = []
    if request.models is not None:
        ends.append(f"after {count_of(request.models, 'model')}")
    if request.seconds is not None:
        seconds = request.seconds
        ends.append(f"after {seconds:g} {'second' if seconds == 1 else 'seconds'}")
    pairs = ", and ordered pairs" if request.pairs else ""
    yield f"drawn: {request.drawing}{pairs}, run seed {request.rng_seed};" + (
        f" ends {' or '.join(ends)}"
    )
    yield printable(f"the run directory would be {path}; nothing was written")


def _model_line(model: ModelCoverage, models: int | None) -> str:
    """Return what is run of the model that the user named."""
    told = f"{model.distinct} distinct operators of {model.file} as they stand"
    if models is not None and models <= model.distinct:
        return f"at most {models} of the {told}"
    return f"first the {told}, then models near them"
