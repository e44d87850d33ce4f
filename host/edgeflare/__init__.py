"""EdgeFlare: find the inputs on which a compressed network on its device decides differently."""

__version__ = "0.1.0"
