"""Models as they are drawn, mutated and shrunk: operators, configurations, and who feeds whom.

The room within, `baselines`, has MEMO's loop, which even drawing is compared with.
"""
