"""Private scores, private choice among settings, and a budget divided among both."""
