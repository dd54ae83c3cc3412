"""What `fit` allocates at its peak, on top of the caller's matrix."""

import gc
from pathlib import Path
from typing import Any

from dplasso import DPFrankWolfeClassifier
from evidence.datasets import Spec, UnavailableError, describe, load_spec, sizes
from evidence.items import Settings, Table
from evidence.machine import status

TITLE = "Memory of a fit"
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
# Of the caller's CSR arrays, and bytes for each row and column.
CSR_PARTS, BYTES_EACH = 1.5, 48


def measure(spec: Spec, config: Any, settings: Settings) -> dict[str, Any]:
    """Fit once, in a process of its own, and read the kernel's high-water mark."""
    if not _CLEAR.exists():
        raise UnavailableError("peak memory is read from Linux's /proc")
    data = load_spec(spec, settings.data, settings.n_jobs)
    X, y = data.X, data.y

    def fit(rows: Any, labels: Any) -> None:
        DPFrankWolfeClassifier(
            config.epsilon,
            config.delta,
            l1_radius=config.radius,
            n_iter=config.n_iter,
            fit_intercept=False,
            classes=(0, 1),
            n_jobs=settings.n_jobs,
        ).fit(rows, labels)

    # Compilation has memory of its own.
    fit(X[:500], y[:500])
    gc.collect()
    _CLEAR.write_text(_RESET_PEAK)
    before = status("self", "VmRSS")["VmRSS"]
    fit(X, y)
    peak = status("self", "VmHWM")["VmHWM"] - before
    arrays = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return {
        "data": describe(data),
        "n_iter": config.n_iter,
        "csr_bytes": arrays,
        "peak_bytes": peak,
        "allowed_bytes": int(CSR_PARTS * arrays + BYTES_EACH * sum(X.shape)),
    }


def section(results: dict[str, dict[str, Any]]) -> list[str | Table]:
    """Lay out the results."""
    rows = [
        [
            case,
            sizes(found["data"]),
            str(found["n_iter"]),
            _mb(found["csr_bytes"]),
            _mb(found["peak_bytes"]),
            _mb(found["allowed_bytes"]),
            "yes" if found["peak_bytes"] <= found["allowed_bytes"] else "NO",
        ]
        for case, found in results.items()
    ]
    head = ["data set", "rows x columns, non-zeros", "T", "CSR", "peak on top", "allowed", "kept"]
    return [
        f"Allowed: {CSR_PARTS:g} times the CSR arrays and {BYTES_EACH} bytes for each row and "
        "column. Peak resident memory during `fit` less that before it, MB.",
        Table(head, rows),
    ]


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f}"
