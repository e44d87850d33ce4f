"""Comparison of strategies: many campaigns over the same pairs, with intervals of their figures."""
