"""What a fleet has, and the units that its work is shared out in."""
