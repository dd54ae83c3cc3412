"""Files of our own: archives without pickle, atomic writes, locks."""
