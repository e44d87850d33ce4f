"""What the inputs of a pair are: a file, or a room within, for each domain.

How near an input is to its seed is noted in the journal when the input is stored. Derived from the
files it would need the domain with its settings, and these may name Python code, which reading a
run must not import.

A front end raises UserError for a sound that is shorter than one of its frames; the docstrings
within leave that out.
"""
