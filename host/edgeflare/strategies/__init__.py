"""Search strategies: each asks for evaluations and is told their outcomes.

The rooms within: `baselines` has published searches, which those here are compared with; `refining`
has what strengthening and shrinking are made of. These lie here since they ask queries and are told
outcomes, as strategies.

A strategy raises UserError for a parameter that is not of its type or not within its bounds, and
whatever draws operators for one that is unknown, does not load or breaks its promise; the
docstrings within leave that out.
"""
