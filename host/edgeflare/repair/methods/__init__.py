"""The methods of repair, one file each; `repair_methods` has them in their order.

A file says what its method does to the compressed model and which candidates it makes, and has what
fits and writes, as far as no other method needs that: the rest is in `fitting`, `precision` and
`post_training`.

A method raises UserError as these rooms say, and where it finds nothing to change.
"""
