"""MEMO's mutations of single layers: CMode and CShape, and its mutation of what they read: NaN.

The paper's §3.3 says what they do to models of Keras.

Differences from the original:

- A parameter's options are its buckets, so that a scale, too, has a few.
- Scales and zero points, which Keras has not, are modes: they change what is computed, and no
  shape.
- Layers behind the changed one follow it. In the published code they are built again as they were,
  and a mutant that then fails is lost.
- The published code multiplies a layer's result by NaN, infinity or 0, in a layer of its own, so
  that nothing but NaN is left of all inputs. Here the layer is given a tensor of the model instead:
  one row of what such tensors are given has NaN, infinities and denormals among ordinary values,
  which is where a kernel that swallows them shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgeflare.conform.drafts.cells import cell_parameters, with_setting
from edgeflare.conform.drafts.coverage import Bucket
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode
from edgeflare.conform.drafts.draft_mutation import MutationContext, refed
from edgeflare.conform.drafts.feeding import rederived
from edgeflare.conform.drafts.uniform_drawing import setting_in
from edgeflare.conform.specification.parameter import OperatorParameter, ParameterKind

_MOST_TRIES = 4
"""Settings that are tried for one layer."""


def changed_modes(draft: Draft, context: MutationContext) -> Draft | None:
    """Change a mode, scale or zero point of one to five layers, to a new one if any is (CMode)."""
    return _changed(draft, context, ("mode", "quantization"))


def changed_shapes(draft: Draft, context: MutationContext) -> Draft | None:
    """Change a shape parameter of one to five layers, to a new one if any is (CShape)."""
    return _changed(draft, context, ("shape",))


def special_input(draft: Draft, context: MutationContext) -> Draft | None:
    """Give a layer a tensor of the model with NaN and infinities instead of a result (NaN)."""
    fed = [
        (at, operand)
        for at, node in enumerate(draft.nodes)
        for operand, value in enumerate(context.graphs.operands(node))
        if node.sources[operand] != FRESH and value.dtype.startswith("float")
    ]
    if not fed:
        return None
    at, operand = fed[int(context.rng.integers(len(fed)))]
    return Draft(refed(draft.nodes, at, operand, FRESH))


def _changed(
    draft: Draft, context: MutationContext, kinds: Sequence[ParameterKind]
) -> Draft | None:
    mutant = draft
    places = context.shuffled(range(len(draft.nodes)))
    for at in places[: context.change_count()]:
        for _ in range(_MOST_TRIES):
            node = _changed_node(mutant.nodes[at], context, kinds)
            if node is None:
                continue
            nodes = (*mutant.nodes[:at], node, *mutant.nodes[at + 1 :])
            whole = rederived(nodes, context.graphs)
            if (
                whole is not None
                and whole.nodes[at].configuration != mutant.nodes[at].configuration
            ):
                mutant = whole
                break
    return None if mutant is draft else mutant


def _changed_node(
    node: DraftNode, context: MutationContext, kinds: Sequence[ParameterKind]
) -> DraftNode | None:
    """Return a node with another setting, still fed as it was; None where none was found."""
    parameters = [one for one in cell_parameters(node.cell) if one.kind in kinds]
    if not parameters:
        return None
    bucket = _wanted_bucket(node, parameters, context)
    parameter = next(one for one in parameters if one.name == bucket[2])
    setting = setting_in(bucket, parameter.draw(context.rng), context.rng)
    if setting is None or setting == node.configuration[parameter.name]:
        return None
    changed = with_setting(node.cell, node.configuration, parameter.name, setting)
    return None if changed is None else replace(node, configuration=changed, given=None)


def _wanted_bucket(
    node: DraftNode, parameters: Sequence[OperatorParameter], context: MutationContext
) -> Bucket:
    """Return a bucket that was not invoked before, or any."""
    names = {one.name for one in parameters}
    new = [one for one in context.coverage.new_buckets(node.cell) if one[2] in names]
    if new:
        return new[int(context.rng.integers(len(new)))]
    parameter = parameters[int(context.rng.integers(len(parameters)))]
    bucket = parameter.buckets[int(context.rng.integers(len(parameter.buckets)))]
    return (*node.cell, parameter.name, bucket)
