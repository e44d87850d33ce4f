"""Search strategies: each asks for evaluations and is told their outcomes.

The room within: `refining` has what strengthening and shrinking are made of. These lie here since
they ask queries and are told outcomes, as strategies.
"""
