"""Compiled kernels, progress and threads."""
