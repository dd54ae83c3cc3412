"""Evidence: the paper again, benchmarks, and assurance that fits are private."""

import os
from pathlib import Path

# Kernels here call those of the package, whose sources numba does not look at: all are kept in a
# folder that the package names after its sources.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".numba_cache"))
