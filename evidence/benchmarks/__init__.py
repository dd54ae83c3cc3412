"""Side-by-side timings, each run as a module: ``python -m evidence.benchmarks.selection``."""
