"""The methods of repair, by what they change; `repair_methods` has them in their order.

A file says what its methods do to the compressed model and which candidates they make, and has what
fits and writes, as far as no other file needs that: the rest is in `fitting`, `precision` and
`post_training`.

A method raises UserError as these rooms say, and where it finds nothing to change.
"""
