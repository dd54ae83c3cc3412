"""Noisy gradient descent on unit rows: the dense model, and short lists."""
