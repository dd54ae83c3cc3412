"""Evidence: the paper again, benchmarks, and assurance that fits are private."""
