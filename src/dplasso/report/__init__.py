"""The report to sign (page.py) and pictures in Python (displays.py)."""
