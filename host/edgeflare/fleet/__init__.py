"""Commands that run on many hosts, on Ray: units of work, and the devices of a lab.

The rooms within, each of which may import those after it: `record` keeps and shows how far the work
is, `cluster` carries attempts to hosts, `work` is what a host does. Jobs are what commands ask.

Each run of a bench or a ranking is a unit, made by the whole command with `--only`, and not by a
`search` that would say the same: its plan then comes out of the code that the last unit compares it
by, and what depends on all models, such as their names, is decided from all of them. Their folder
appears once all is done, since half a ranking says nothing.

A job raises InfrastructureError where the cluster is not reached or no device is left, and
UserError where a unit's command has to be corrected; the docstrings within leave that out.
"""
