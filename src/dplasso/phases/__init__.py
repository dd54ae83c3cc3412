"""A fit as a list of phases: what each one releases, by what was released before it."""
