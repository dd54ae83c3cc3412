"""Svmlight text, read in parallel."""
