"""The methods of repair, one file each; `repair_methods` has them in their order.

A file says what its method does to the compressed model and which candidates it makes, and calls
what fits: `fitting`, `precision`, `post_training`.
"""
