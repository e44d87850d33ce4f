"""What the outputs of a pair mean: one file for each task.

A task raises UserError for a setting that is out of its range or does not go with another; the
docstrings within leave that out.
"""
