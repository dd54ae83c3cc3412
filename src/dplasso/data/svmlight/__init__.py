"""Svmlight text, read in parallel."""

from dplasso.data.svmlight.reader import read_svmlight

__all__ = ["read_svmlight"]
