"""What a host does for a fleet: an attempt at a unit, on one device."""
