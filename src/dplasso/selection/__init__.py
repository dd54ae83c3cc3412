"""Structures that choose the next vertex, behind one contract."""
