"""The domain of arrays: numbers of sensors, tables and features."""
