"""A survey as one HTML file that needs nothing but itself. Needs the extra `report`."""
