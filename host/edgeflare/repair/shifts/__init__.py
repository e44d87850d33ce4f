"""The repair that moves boundaries behind a model: a shift for each two classes, from a run.

The room within, `baselines`, has the published repair, which shifts are compared with.
"""
