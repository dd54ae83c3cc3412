"""What surrounds a run: compiled kernels, progress, threads."""
