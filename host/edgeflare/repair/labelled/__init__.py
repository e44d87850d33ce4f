"""The repairs that are judged by true labels, and not by the original's answers.

Each is one file behind `LabelledRepair`, which divides the seeds, compares what is made of them,
and judges the best by inputs that chose nothing. Nothing of them is stored to go on with.
"""
