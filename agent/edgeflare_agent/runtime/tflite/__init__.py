"""TFLite's interpreter, of either package that has it, as a runtime."""
