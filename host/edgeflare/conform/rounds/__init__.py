"""A conformance run: rounds of models that are drawn, run, judged, told apart and shrunk."""
