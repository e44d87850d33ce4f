"""Who answers in the device's place, for a search and for the refinement of a finding."""
