"""Data structures that choose the next vertex, with a common contract."""
