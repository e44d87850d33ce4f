"""Natural conditions: what happens to an input in the field, in five severities, by domain.

Whatever looks conditions up raises UserError where EdgeFlare is not installed as a package, whose
entry points name them; the docstrings within leave that out.
"""
