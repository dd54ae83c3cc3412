"""A packaged data set: UCI Adult."""
