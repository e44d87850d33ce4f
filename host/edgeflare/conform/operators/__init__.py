"""The operators that are known, one declaration for each."""
