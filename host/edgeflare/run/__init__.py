"""The record of a run: journal, plan, header, directory and document."""
