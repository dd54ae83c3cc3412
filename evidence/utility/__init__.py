"""Utility: how well models predict at a budget, at untouched settings, beside other methods."""
