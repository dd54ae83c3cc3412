"""Records for fits that choose their own settings, and how two such fits compare."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp

from dplasso import DPLassoClassifier

MANY = 900
NAMES = np.array(["ant", "bee", "cat", "dog"])
COLUMNS = 500


def records(n_columns=MANY, n_rows=700, seed=3):
    """Return sparse rows of which the first ten columns tell the label."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, n_columns)) < 0.05).astype(np.float32)
    y = rng.random(n_rows) < 0.35
    X[:, :10] = rng.random((n_rows, 10)) < np.where(y, 0.8, 0.2)[:, None]
    return sp.csr_array(X), np.where(y, "yes", "no")


@cache
def four_classes():
    """Return sparse rows of which three columns tell each of four classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 900)
    X = (rng.random((y.size, COLUMNS)) < 0.03).astype(np.float32)
    X[:, :12] = rng.random((y.size, 12)) < np.where(np.arange(12) // 3 == y[:, None], 0.8, 0.1)
    return sp.csr_array(X), NAMES[y]


def fitted(data, **options):
    return DPLassoClassifier(**({"epsilon": 20.0, "random_state": 7} | options)).fit(*data)


def releases(model, *, last=True):
    """Return the releases in a model file, `kind-field` to array; of a kind the last or first.

    `kind-share`: the share of the budget.
    """
    with TemporaryDirectory() as folder:
        model.save(path := Path(folder) / "m.npz")
        with np.load(path) as file:
            names = [name for name in file.files if name[:2].isdigit()]
            held = {}
            for name in sorted(names, reverse=not last):
                place, kind, _ = name.split("-", 2)
                held |= {f"{kind}-share": file["shares"][int(place)], name[3:]: file[name]}
    return held
