"""Twins: synthetic data sets with the shape of the paper's."""
