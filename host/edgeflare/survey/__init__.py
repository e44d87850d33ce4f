"""How often a compressed model deviates on its device under natural conditions.

The rooms within, each of which may import those after it: `presentation` has the reports, `rare`
the rates that are too small to see, `phases` what host and device are asked, `record` what is kept,
`rates` the figures, `items` the inputs under conditions and which of them are drawn, `estimate` the
statistics. The gates, limits for a release, lie between `record` and `rates`.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good; the docstrings within leave that out.
"""
