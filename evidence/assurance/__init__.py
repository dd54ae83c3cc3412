"""Evidence that fits are private, made by commands; see docs/assurance-cases.md."""
