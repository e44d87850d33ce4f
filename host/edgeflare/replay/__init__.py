"""What runs found, tried again: on another device, with another file, beside one another.

The room within: `reproduction_scripts` go into exported archives.
"""
