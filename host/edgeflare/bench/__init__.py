"""Strategies side by side: many campaigns over the same pairs, and what their figures are worth."""
