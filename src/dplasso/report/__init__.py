"""What people look at: the page to sign (page.py), and pictures in Python (displays.py)."""
