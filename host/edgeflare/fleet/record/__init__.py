"""What is kept of a fleet's work: the state of units and devices, and the page that shows it."""
