"""The record of a run: journal, plan, header, directory and document.

The rooms within: `merge` makes one run of several, `systematic` says what two arms do differently
on many seeds.

What reads a journal raises UserError where it is damaged, and what writes a run where something is
at the path that must not be written over or another process works there; the docstrings within
leave that out.
"""
