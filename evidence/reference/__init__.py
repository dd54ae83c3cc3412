"""Slow, obvious implementations and hard cases, which evidence and tests compare with."""
