"""What a check measures, as its document has it."""
