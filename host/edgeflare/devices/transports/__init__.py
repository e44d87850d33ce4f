"""Transports: what brings a device's agent up and takes it down, one file each."""
