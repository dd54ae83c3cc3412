"""Losses: how hard one record pulls at its margin, and what a margin says of its target."""
