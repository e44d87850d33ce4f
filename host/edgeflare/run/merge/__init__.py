"""One run made of several that searched parts of the same seeds, exactly, by the seeds' ids.

Rows are read in the order of their keys, in one pass over all runs: those of a million findings
take 0.7 GB, most of it for whose seed each is. The merged run is made beside its place and renamed
at the end. Its health is the sum of its parts', and what is derived from rows is derived anew.
"""
