"""The longest run and the widest one, to the end, in stated memory.

Each case runs in a process of its own, whose peak resident memory the system reports. The bounds
are what the documentation promises: a small base for Python, numba and the accountant, the matrix
in both orientations, and 32 bytes a column.
"""

import resource
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from evidence.cells import in_own_process

# What a fit of nothing takes: interpreter, numba, scikit-learn and the accountant.
BASE_MIB = 400.0


@dataclass(frozen=True)
class Case:
    """One run, and the memory that is promised for it beyond the base."""

    about: str
    n_rows: int
    n_columns: int
    row_length: int
    n_iter: int
    checkpoints: bool

    @property
    def promised_mib(self) -> float:
        """The bound on peak memory, in MiB: so many bytes a column, entry, row and step."""
        entries = self.n_rows * self.row_length
        promised = 32 * self.n_columns + 40 * entries + 100 * self.n_rows + 40 * self.n_iter
        return BASE_MIB + promised / (1 << 20)


CASES = {
    "longest": Case("400,000 steps, with checkpoints", 20_000, 50_000, 20, 400_000, True),
    "widest": Case("100,000,000 columns", 2_000, 100_000_000, 50, 200, False),
}


def make_data(case: Case, seed: int) -> tuple[Any, Any]:
    """Draw binary rows over columns whose popularity falls off like a power."""
    rng = np.random.default_rng(seed)
    shape = case.n_rows, case.row_length
    columns = (case.n_columns ** rng.random(shape)).astype(np.int64) - 1
    indptr = np.arange(case.n_rows + 1, dtype=np.int64) * case.row_length
    size = case.n_rows, case.n_columns
    ones = np.ones(columns.size, np.float32)
    X = sp.csr_array((ones, columns.ravel(), indptr), shape=size)
    X.sum_duplicates()
    y = (columns[:, 0] % 2).astype(np.int64)
    return X, y


def run_case(case: Case, seed: int) -> dict[str, Any]:
    """Run a case in this process and measure it."""
    from dplasso import DPFrankWolfeClassifier, load
    from dplasso.checkpoint.session import fit_with_checkpoints, read_checkpoint

    X, y = make_data(case, seed)
    # An honest private run: entropy from the system, a generous delta for so many steps.
    model = DPFrankWolfeClassifier(1.0, 1e-5, n_iter=case.n_iter, l1_radius=50.0)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        if case.checkpoints:
            fit_with_checkpoints(model, X, y, path)
            complete = read_checkpoint(path).is_complete
        else:
            model.fit(X, y)
            complete = True
        seconds = time.perf_counter() - began
        model.save(Path(folder) / "model.npz")
        again = load(Path(folder) / "model.npz")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    whole = again.transcript_ == model.transcript_ and len(model.transcript_) == case.n_iter
    return {
        "about": case.about,
        "n_rows": case.n_rows,
        "seconds": round(seconds, 1),
        "peak_mib": round(peak),
        "promised_mib": round(case.promised_mib),
        "entries": int(X.nnz),
        "nonzero_weights": int(model.coef_.nnz),
        "epsilon": model.privacy_.epsilon,
        "passed": bool(peak <= case.promised_mib and complete and whole),
    }


TITLE = "to the end, in stated memory"
QUICK = {"case": ["longest"]}
WEIGHTS = {"longest": 3.0, "widest": 3.0}


def split(*, case: list[str] = [*CASES], seed: int = 0) -> dict[str, dict[str, Any]]:  # noqa: B006
    """Return the cases of these names."""
    return {name: {"case": name, "seed": seed} for name in case}


def measure(*, case: str, seed: int) -> dict[str, Any]:
    """Run a case in this process and measure it; what has to be compiled is, in another one."""
    small = replace(CASES[case], n_rows=50, n_columns=300, n_iter=40)
    in_own_process(partial(run_case, small, seed))
    return run_case(CASES[case], seed)


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return the peaks, in words."""
    told = (
        f"{one['about']}, {one['n_rows']:,} rows, {one['entries']:,} entries: peak "
        f"{one['peak_mib']:,} MiB of {one['promised_mib']:,} promised"
        for one in results
    )
    return ["; ".join(told)]
