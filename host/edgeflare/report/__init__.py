"""Reports of a run, all made from its journal: the JSON document first, the others from that."""
