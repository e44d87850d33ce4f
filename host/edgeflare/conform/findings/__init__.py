"""What failing models have in common, and the smallest of them.

Of many configurations near failing ones and far from them, those are run next of whose verdict the
likely conditions foretell most differently; a fifth is not chosen so, since the condition may be
none of those thought of. Findings are shrunk side by side: each asks for a few smaller models at a
time, and those of all findings share a file, since each file costs a process.
"""
