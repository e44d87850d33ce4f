"""Reservations: how a lab's own booking of a device is made and given back."""
