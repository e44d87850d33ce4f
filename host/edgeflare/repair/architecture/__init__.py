"""ArchRepair: a block of a float classifier whose operators and weights are searched together.

Qi et al., "ArchRepair: Block-Level Architecture-Oriented Repairing for Deep Neural Networks" (TOSEM
2023); section and equation numbers are that paper's. What differs is in docs/differences.md.
"""
