"""EdgeFlare for Python: what `import edgeflare` gives; a file each for what it calls."""
