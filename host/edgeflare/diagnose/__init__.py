"""Why a finding deviates, and where in the network it begins."""
