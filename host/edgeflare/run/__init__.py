"""The record of a run: journal, plan, header, directory and document.

The rooms within: `merge` makes one run of several, `systematic` says what two arms do differently
on many seeds.
"""
