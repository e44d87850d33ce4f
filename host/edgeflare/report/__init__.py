"""Reports of a run, all made from its journal: the JSON document first, the others from that.

The room within: `html` makes the page.
"""
