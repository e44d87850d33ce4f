"""The post-training of Jiang et al.: a classifier tuned as a regression of its layer before last.

"A Post-training Framework for Improving the Performance of Deep Learning Models via Model
Transformation", TOSEM 33 (3), 2024, https://doi.org/10.1145/3630011.

What tunes returns a file of the same length, with the same operators. It raises UserError
where no layer but the last has weights, a slice has no neurons of the layer, an operator has no
gradient, or constants are shared; the docstrings within leave that out.
"""
