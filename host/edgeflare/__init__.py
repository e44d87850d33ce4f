"""EdgeFlare: find the inputs on which a compressed network on its device decides differently."""

from edgeflare_protos import __version__ as __version__
