"""Which blocks of a compressed model to compute in float or in int16, and which one to blame."""
