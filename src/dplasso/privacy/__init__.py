"""Mechanism, accounting, randomness and the privacy statement."""
