"""Published searches that those of EdgeFlare are compared with."""
