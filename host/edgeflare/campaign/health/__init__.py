"""The health of the devices over hours: canaries, temperature, and pauses to cool down."""
