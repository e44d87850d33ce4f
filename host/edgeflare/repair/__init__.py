"""A compressed model made to decide as its original does, as far as that surely helps.

The rooms within: `methods` has a file for each method; `fitting` changes numbers of the model in
their places, `precision` computes blocks of it in float, `post_training` tunes its weights
by gradients, `shifts` moves its boundaries back; `judging` compares candidates and judges the best.
`labelled` has the repairs that are judged by labels, of which one trains the original by
`architecture` before it is compressed. `page` shows a repair.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good, and what reads a repair UserError where its document is damaged or of
another schema; the docstrings within leave that out.
"""
