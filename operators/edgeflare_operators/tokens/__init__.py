"""Operators on tokens: ids of a vocabulary, (length,), integers, whose number they keep.

Which ids may take each other's place is said by `TokenSets`, which the domain hands them. An
operator that is called without takes all ids of the input to be exchangeable.
"""

from edgeflare_operators.tokens.token_edits import drop, insert, replace, swap
from edgeflare_operators.tokens.token_sets import TokenSets

__all__ = ["TokenSets", "drop", "insert", "replace", "swap"]
