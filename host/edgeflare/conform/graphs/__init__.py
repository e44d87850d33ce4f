"""Graphs of operators that are right alone, and wrong together.

A graph is wrong where it answers otherwise than its operators one by one on the same kernels, each
with operands of its own. So the fault is the graph's by construction: a buffer that is reused too
early, an output that is taken for a temporary, operators that are fused and should not be. What an
operator does wrong alone shows on both sides, and is left to the rest of a conformance run.

Graphs are drawn in stages: single operators whose operands are one tensor, pairs, triples of what
was found, and graphs of up to ten operators. Random graphs hardly ever meet what a pair shows, and
pairs never show what takes a chain of views.
"""
