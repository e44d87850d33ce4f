"""Whether a compressed model may ship: measured, judged by gates, and said in one sentence.

`check_run` goes through the `phases`. `figures` are what is measured, `answers`, `readings`,
`file_faults`, `layer_faults`, `invocation_variants` and `operator_conformance` measure them,
`gates`, `causes` and `check_verdict` judge them, and `check_document` is what is kept.
`assumptions` says what is taken for granted of models that come without a `pair.toml`.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good, and whatever reads a file UserError where that cannot be read, is damaged
or of another schema; the docstrings within leave that out.
"""
