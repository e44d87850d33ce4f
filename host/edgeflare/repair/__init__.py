"""A compressed model made to decide as its original does, as far as that surely helps.

The rooms within: `fitting` changes numbers of the model in their places, `post_training` tunes its
weights by gradients, `architecture` trains the original before it is compressed, `precision`
computes blocks of it in float or int16, `shifts` moves its boundaries back, `judging` compares
candidates and judges the best, `page` shows a repair.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good, and what reads a repair UserError where its document is damaged or of
another schema; the docstrings within leave that out.
"""
