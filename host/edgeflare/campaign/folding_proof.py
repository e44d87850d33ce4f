"""The proof that a model with folded shapes is the user's own: equal outputs on the host."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

from edgeflare.campaign.panel import ArmModel
from edgeflare.core.seeds import Seeds
from edgeflare.core.tensor import RawBatch
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.detection_rows import batch_with_unused_rows_zeroed
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.pair import Pair
from edgeflare_protos.kernel_sets import Kernels

PROVEN_ON = 16
"""Seeds that both files are run on. What is folded does not depend on the input, so a wrong
constant shows on any; several are run for kernels that keep something between two inputs."""


def with_folding_proven(
    pair: Pair, twin: ArmModel, opened: Mapping[Kernels, Evaluator], seeds: Seeds
) -> Pair:
    """Run the user's own file beside the folded one, and return the pair with what was proven.

    Args:
        pair: as `with_shapes_folded` gives it; one without folded shapes is returned as it is.
        twin: says how inputs become rows.
        opened: the models of the folded file, by the host's kernels that run them.
        seeds: the first of them are run.

    Raises:
        UserError: outputs differ in a bit, or one of both gives no answer where the other does.

    """
    if pair.folded is None:
        return pair
    count = min(PROVEN_ON, len(seeds))
    rows = twin.rows(seeds.inputs[:count], seeds.seed_ids[:count])
    unfolded = replace(pair, fold_shapes=False, folded=None)
    for kernels, model in opened.items():
        with closing(open_compressed(unfolded, kernels)) as own:
            raw = [
                batch_with_unused_rows_zeroed(
                    evaluator.signature.outputs, own.makers(), evaluator.submit(rows).result()
                )
                for evaluator in (own, model)
            ]
            if not _equal(*raw):
                raise UserError(
                    f"{pair.compressed}: with its shapes folded it gives other outputs under the"
                    f" {kernels} kernels of the host, so it is another model: leave --fold-shapes"
                    " out, and report this model to EdgeFlare"
                )
    return replace(pair, folded=replace(pair.folded, equal_under=tuple(opened), inputs=count))


def _equal(own: RawBatch, folded: RawBatch) -> bool:
    same_failures = own.failures.keys() == folded.failures.keys()
    return same_failures and own.outputs.tobytes() == folded.outputs.tobytes()
