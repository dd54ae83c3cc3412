"""What `fit` allocates at its peak, on top of the caller's matrix."""

import gc
from pathlib import Path
from typing import Any

from dplasso import DPLassoClassifier
from evidence.benchmarks.config import Memory
from evidence.benchmarks.datasets import Context, UnavailableError, describe, load, sizes
from evidence.benchmarks.tables import table

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
# Of the caller's CSR arrays, and bytes for each row and column.
CSR_PARTS, BYTES_EACH = 1.5, 48


def cases(settings: Memory) -> list[str]:
    return [spec.name for spec in settings.data]


def resident(field: str) -> int:
    """Return VmRSS or VmHWM of this process, in bytes."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise UnavailableError(f"{_STATUS} has no {field}")


def measure(case: str, settings: Memory, context: Context) -> dict[str, Any]:
    """Fit once, in a process of its own, and read the kernel's high-water mark."""
    if not _CLEAR.exists():
        raise UnavailableError("peak memory is read from Linux's /proc")
    spec = next(spec for spec in settings.data if spec.name == case)
    data = load(spec, context)
    X, y = data.X, data.y

    def fit(rows: Any, labels: Any) -> None:
        DPLassoClassifier(
            settings.epsilon,
            settings.delta,
            l1_radius=settings.radius,
            n_iter=settings.n_iter,
            fit_intercept=False,
            classes=(0, 1),
            n_jobs=context.n_jobs,
        ).fit(rows, labels)

    # Compilation has memory of its own.
    fit(X[:500], y[:500])
    gc.collect()
    _CLEAR.write_text(_RESET_PEAK)
    before = resident("VmRSS")
    fit(X, y)
    peak = resident("VmHWM") - before
    arrays = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return {
        "data": describe(data),
        "n_iter": settings.n_iter,
        "csr_bytes": arrays,
        "peak_bytes": peak,
        "allowed_bytes": int(CSR_PARTS * arrays + BYTES_EACH * sum(X.shape)),
    }


def section(results: dict[str, dict[str, Any]]) -> str:
    """Write the comparison's part of the report."""
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
    return "\n\n".join(
        [
            "## Memory of a fit",
            f"Allowed: {CSR_PARTS:g} times the CSR arrays and {BYTES_EACH} bytes for each row and "
            "column. Peak resident memory during `fit` less that before it, MB.",
            table(head, rows),
        ]
    )


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f}"


def draw(results: dict[str, dict[str, Any]], figure: Any) -> None:
    """Draw peak and allowance as bars."""
    axis = figure.subplots()
    for case, found in results.items():
        axis.barh([f"{case}: peak", f"{case}: allowed"], [found["peak_bytes"] / 1e6] * 2)
        axis.barh([f"{case}: allowed"], [found["allowed_bytes"] / 1e6], color="lightgrey")
    axis.set_xlabel("MB on top of the caller's matrix")
    axis.invert_yaxis()
