"""What the user has agreed to: only then does a document run code or reach an address."""
