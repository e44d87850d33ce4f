"""Natural conditions: what happens to an input in the field, in five severities, by domain."""
