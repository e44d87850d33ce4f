"""A repair as a page, and what of it only a browser shows."""
