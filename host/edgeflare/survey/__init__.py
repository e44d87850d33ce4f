"""How often a compressed model deviates on its device under natural conditions.

The parts within, each of which may import those after it: `presentation` has the reports,
`rare_events` the rates that are too small to see, `phases` what host and device are asked, `record`
what is kept, `gates` the limits for a release, `rates` the figures, `sampling_design` which items
the device is asked about, `items` the inputs under conditions.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good; the docstrings within leave that out. They leave out UserError as well,
where a document or a journal is damaged, a condition makes something of another shape or dtype, or
scipy is not installed, which rates need.
"""
