"""A default fit of DPLogisticRegression against the products that its gradients need.

    python -m evidence benchmarks/gradient --file news20_rebuilt.svm.gz

Those are 2 T products by scipy in float32 with one thread: rows times weights and columns times
residuals, each the faster of CSR and CSC. Fits and products take turns. Processor time, of all
threads together, is what a machine with other work still tells.
"""

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from evidence.timing import clocks, interleave

TITLE = "A default fit of DPLogisticRegression against 2 T products by scipy"
QUICK = {"pairs": 2}


def measure(
    *, file: Path, epsilon: float = 1.0, repeats: int = 3, pairs: int = 10, n_jobs: int = 1
) -> dict[str, Any]:
    """Time fits on all rows of a file, and some pairs of products scaled to T."""
    from dplasso import DPLogisticRegression
    from dplasso.data.formats import read_data

    read = read_data(file)
    X, y = csr_array(read.X).astype(np.float32), np.asarray(read.y) > 0
    columns = X.tocsc()
    transposed = csr_array(X.T)
    rng = np.random.default_rng(0)
    w = rng.standard_normal(X.shape[1], dtype=np.float32)
    r = rng.standard_normal(X.shape[0], dtype=np.float32)

    model = DPLogisticRegression(epsilon, classes=(False, True), n_jobs=n_jobs)
    # Compiles what is needed.
    clone(model).fit(X, y)
    runs = {
        "fit": lambda: clocks(lambda: model.fit(X, y)),
        "rows, gathered": lambda: clocks(lambda: X @ w, pairs),
        "rows, scattered": lambda: clocks(lambda: columns @ w, pairs),
        "columns, gathered": lambda: clocks(lambda: transposed @ r, pairs),
        "columns, scattered": lambda: clocks(lambda: X.T @ r, pairs),
    }
    timed = interleave(runs, repeats)
    found = {}
    for place, clock in enumerate(("wall", "processor")):
        middle = {name: median(one[place] for one in ones) for name, ones in timed.items()}
        rows = min(middle["rows, gathered"], middle["rows, scattered"])
        both = rows + min(middle["columns, gathered"], middle["columns, scattered"])
        found[clock] = {"fit": middle["fit"], "products": int(model.n_iter_) * both}
    known = {"shape": [*X.shape, X.nnz], "n_jobs": n_jobs, "steps": int(model.n_iter_)}
    return {**known, "runs": timed, **found}


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return what was measured, in words."""
    (one,) = results
    rows, columns, entries = one["shape"]
    wall, processor = one["wall"], one["processor"]
    # Version 0.2.0 took as many steps always.
    steps = one.get("steps", 300)
    return [
        f"{rows:,} x {columns:,}, {entries:,} non-zeros: a fit with {one['n_jobs']} threads takes "
        f"{wall['fit']:.1f} s, 2 x {steps} products {wall['products']:.1f} s: "
        f"{wall['fit'] / wall['products']:.2f} times. Processor time: {processor['fit']:.1f} s "
        f"of all threads, {processor['products']:.1f} s of the products"
    ]
