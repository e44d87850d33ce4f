"""The phases of a survey: what the host answers, then what the device does."""
