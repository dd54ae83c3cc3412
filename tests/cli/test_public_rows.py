"""Public rows without labels on the command line."""
