"""Models as they are drawn, mutated and shrunk: operators, configurations, and who feeds whom."""
