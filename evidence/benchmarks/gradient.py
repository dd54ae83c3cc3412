"""A default fit of DPLogisticRegression against the products that its gradients need.

    python -m evidence benchmarks/gradient --file news20_rebuilt.svm.gz

Those are 2 T products by scipy in float32 with one thread: rows times weights and columns times
residuals, each the faster of CSR and CSC. Fits and products take turns.
"""

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from evidence.timing import interleave, seconds

TITLE = "A default fit of DPLogisticRegression against 2 T products by scipy"
QUICK = {"pairs": 2}
STEPS = 300


def measure(
    *, file: Path, epsilon: float = 1.0, repeats: int = 3, pairs: int = 10, n_jobs: int = 1
) -> dict[str, Any]:
    """Time fits on all rows of a file, and some pairs of products scaled to T."""
    from dplasso import DPLogisticRegression
    from dplasso.data.files import read_data

    read = read_data(file)
    X, y = csr_array(read.X).astype(np.float32), np.asarray(read.y) > 0
    columns = X.tocsc()
    transposed = csr_array(X.T)
    rng = np.random.default_rng(0)
    w = rng.standard_normal(X.shape[1], dtype=np.float32)
    r = rng.standard_normal(X.shape[0], dtype=np.float32)

    def by(rows: Any, by_columns: Any) -> float:
        return seconds(lambda: [(rows @ w, by_columns @ r) for _ in range(pairs)]) / pairs

    def fit() -> float:
        model = DPLogisticRegression(epsilon, classes=(False, True), n_jobs=n_jobs)
        return seconds(lambda: model.fit(X, y))

    # Compiles what is needed.
    DPLogisticRegression(epsilon, classes=(False, True), n_iter=4, n_jobs=n_jobs).fit(X, y)
    runs = {
        "fit": fit,
        "gathered": lambda: by(X, transposed),
        "scattered": lambda: by(columns, X.T),
    }
    timed = interleave(runs, repeats)
    return {
        "shape": [*X.shape, X.nnz],
        "n_jobs": n_jobs,
        "runs": timed,
        "fit": median(timed["fit"]),
        "products": STEPS * min(median(timed["gathered"]), median(timed["scattered"])),
    }


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return what was measured, in words."""
    (one,) = results
    rows, columns, entries = one["shape"]
    return [
        f"{rows:,} x {columns:,}, {entries:,} non-zeros: a fit with {one['n_jobs']} threads takes "
        f"{one['fit']:.1f} s, 2 x {STEPS} products {one['products']:.1f} s: "
        f"{one['fit'] / one['products']:.2f} times"
    ]
