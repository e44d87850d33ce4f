"""How two arms differ in the same way on many seeds: orders, one-sided changes, clipped outputs."""
