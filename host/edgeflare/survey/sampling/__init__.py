"""Which of the items the device is asked about: strata, draws from them, and rounds of draws."""
