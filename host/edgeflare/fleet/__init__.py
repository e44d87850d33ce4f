"""Commands that run on many hosts, on Ray: units of work, and the devices of a lab."""
