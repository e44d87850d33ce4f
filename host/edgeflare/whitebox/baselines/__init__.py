"""The published measure of what inputs reach in a network; it says nothing of deviations."""
