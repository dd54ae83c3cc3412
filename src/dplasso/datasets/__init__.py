"""Data sets by name: UCI Adult, the catalog, downloads."""
