"""Exact audits, and targets that reach into the solver, for the tests and `make assurance`."""
