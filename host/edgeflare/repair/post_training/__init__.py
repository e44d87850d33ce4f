"""The post-training of Jiang et al.: a classifier tuned as a regression of its layer before last.

"A Post-training Framework for Improving the Performance of Deep Learning Models via Model
Transformation", TOSEM 33 (3), 2024, https://doi.org/10.1145/3630011.
"""
