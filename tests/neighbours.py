"""Neighbouring data sets that are hard on a private fit, in every form a fit accepts.

A data set here is small and has all that tempts an implementation to look at the data: an empty
row, two equal rows, a column of zeros, a column that nobody has, one that half of the rows have,
and entries beyond the bound.
"""

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from evidence.assurance.hostile import CANCELLING
from numpy.typing import NDArray

from dplasso import write_store

N_ROWS, N_COLUMNS = 18, 12
BOUND = 1.5
# Nobody has these two; every second row has column 0.
FREE, ZERO = 10, 11


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets as dense rows (float64) with labels 0 or 1, and their relation.

    `name` is what the differing record is, `shared` the positions of the common records in both,
    in the same order.
    """

    name: str
    relation: str
    rows: tuple[NDArray[Any], NDArray[Any]]
    labels: tuple[NDArray[Any], NDArray[Any]]
    shared: tuple[NDArray[np.int64], NDArray[np.int64]]


def moved_by(bound, relation, rows_per_person=1):
    """Return how far a sum moves between neighbours to which a record adds at most `bound`."""
    return {"add-remove": 1.0, "replace-one": 2.0}[relation] * bound * rows_per_person


def common_records(kind="mixed", seed=0, dtype=np.float32):
    """Return the records that neighbours have in common: rows, shape (N, D), and labels.

    The numbers are the same in single and double precision; all of them 1 if `kind` is "binary".
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(0.0, 1.2, (N_ROWS, N_COLUMNS)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.6] = 0.0
    X[:, 0] = np.where(np.arange(N_ROWS) % 2, 1.0, 0.0)
    X[:, FREE] = X[:, ZERO] = 0.0
    X[4] = X[3]
    X[7] = 0.0
    if kind == "binary":
        X = (X != 0.0).astype(np.float64)
    y = rng.integers(0, 2, N_ROWS)
    y[:2] = 0, 1
    return X.astype(dtype), y


def hostile_records(dtype=np.float64, kind="mixed"):
    """Return records an adversary might choose, by name; extremes are those of `dtype`."""
    limits = np.finfo(dtype)
    zero = np.zeros(N_COLUMNS)
    odd = np.arange(N_COLUMNS) % 2 == 1
    owner, lone, empty_column = zero.copy(), zero.copy(), zero.copy()
    owner[FREE], lone[0], empty_column[ZERO] = 0.75, 1.0, -BOUND
    X, _ = common_records(kind, dtype=np.float64)
    return {
        "ordinary": X[5],
        "duplicate": X[3],
        "huge": np.where(odd, float(limits.max), -float(limits.max)),
        "full": np.full(N_COLUMNS, BOUND),
        "signs": BOUND * np.where(odd, 1.0, -1.0),
        "subnormal": np.where(odd, float(limits.smallest_subnormal), -float(limits.tiny) / 2),
        "negative zeros": -zero,
        "empty": zero,
        "owner of a column": owner,
        "first in the column of zeros": empty_column,
        "half the rows' column alone": lone,
    }


def added(name, entries, label, place, kind="mixed"):
    """Return the common records without, and with, one more record at `place`."""
    X, y = common_records(kind, dtype=np.float64)
    with_one = np.insert(X, place, entries, axis=0), np.insert(y, place, label)
    others = np.arange(N_ROWS), np.delete(np.arange(N_ROWS + 1), place)
    return Pair(name, "add-remove", (X, with_one[0]), (y, with_one[1]), others)


def replaced(name, entries, labels, place, kind="mixed"):
    """Return the common records with one of two records at `place`."""
    pairs = [added(name, entries[i], labels[i], place, kind) for i in (0, 1)]
    both = [tuple(getattr(one, part)[1] for one in pairs) for part in ("rows", "labels", "shared")]
    return Pair(name, "replace-one", *both)


def pairs(relation, dtype=np.float64, kind="mixed"):
    """List neighbours under a relation: every hostile record, each label, several places.

    The extremes are those of `dtype`; `kind` is that of the common records.
    """
    records = hostile_records(dtype, kind)
    places = (0, 9, N_ROWS)
    for number, (name, entries) in enumerate(records.items()):
        for label in (0, 1):
            place = places[(number + label) % 3]
            if relation == "add-remove":
                yield added(name, entries, label, place, kind)
            else:
                # The worst exchange: every sign turned, and the label.
                turned = records["signs"] * (-1 if label else 1)
                yield replaced(name, (entries, turned), (label, 1 - label), place, kind)


def explicit(X):
    """Store every entry, zeros too."""
    n_rows, n_columns = X.shape
    edges = np.arange(0, X.size + 1, n_columns, dtype=np.int32)
    columns = np.tile(np.arange(n_columns, dtype=np.int32), n_rows)
    return sp.csr_array((X.ravel(), columns, edges), shape=X.shape)


def _unsorted(X):
    """Store each row from its last entry to its first."""
    csr = sp.csr_array(X)
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(csr.indptr)])
    return sp.csr_array((csr.data[order], csr.indices[order], csr.indptr), shape=X.shape)


def _halves(X):
    """Store every entry twice, half of it each time."""
    csr = sp.csr_array(X)
    parts = np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr
    return sp.csr_array(parts, shape=X.shape)


def in_parts(columns, entries):
    """Store every entry as three, which add up to it in stored order alone."""
    parts = [*(np.full_like(entries, part) for part in CANCELLING), entries]
    return np.repeat(columns, len(parts)), np.stack(parts, axis=1).ravel()


def _partly_unsorted(X):
    """Store every entry as three, and from the last column on the rows that have column `FREE`.

    Only the record that differs has it.
    """
    csr = sp.csr_array(X)
    rows = []
    for i, (a, b) in enumerate(pairwise(csr.indptr)):
        order = slice(None, None, -1 if X[i, FREE] else 1)
        rows.append(in_parts(csr.indices[a:b][order], csr.data[a:b][order]))
    columns, entries = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return sp.csr_array((entries, columns, 3 * csr.indptr), shape=X.shape)


def _partly_unsorted_columns(X):
    """Store every entry as three, by columns, in which the rows that have column `FREE` lead."""
    order = np.argsort(X[:, FREE] == 0, kind="stable")
    csc = _partly_unsorted(X)[order].tocsc()
    return sp.csc_array((csc.data, order[csc.indices], csc.indptr), shape=X.shape)


def _wide(X):
    """Give a compressed matrix 64-bit indices."""
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _frozen(X):
    """Forbid writing to the arrays."""
    csr = sp.csr_array(X)
    for part in (csr.data, csr.indices, csr.indptr):
        part.flags.writeable = False
    return csr


# Stores that live as long as the process.
_STORES = []


def _on_disk(X):
    """Write rows to a store; the labels are given to the fit apart."""
    _STORES.append(tempfile.TemporaryDirectory(prefix="dplasso-store-"))
    return write_store(Path(_STORES[-1].name) / "records.store", X, np.zeros(X.shape[0])).X


# Everything `fit` accepts, as makers from dense rows of the named type. A further form of input
# (one that lies on disk, say) is covered by adding its maker here.
INPUT_KINDS = {
    "csr float64": (np.float64, sp.csr_array),
    "csr float32": (np.float32, sp.csr_array),
    "csr matrix": (np.float64, sp.csr_matrix),
    "csr, 64-bit indices": (np.float32, lambda X: _wide(sp.csr_array(X))),
    "csc float64": (np.float64, sp.csc_array),
    "csc float32": (np.float32, sp.csc_array),
    "csc, 64-bit indices": (np.float64, lambda X: _wide(sp.csc_array(X))),
    "coo": (np.float64, sp.coo_array),
    "dense float64": (np.float64, np.ascontiguousarray),
    "dense float32, by columns": (np.float32, np.asfortranarray),
    "list": (np.float64, lambda X: X.tolist()),
    "explicit zeros": (np.float64, explicit),
    "unsorted": (np.float64, _unsorted),
    "duplicate entries": (np.float32, _halves),
    "one unsorted row": (np.float32, _partly_unsorted),
    "one unsorted row, by columns": (np.float64, _partly_unsorted_columns),
    "read-only": (np.float32, _frozen),
    "store": (np.float32, _on_disk),
    "store float64": (np.float64, _on_disk),
}


def in_form(form, pair):
    """Return both data sets of a pair, (X, y) each, in one of `INPUT_KINDS`."""
    dtype, make = INPUT_KINDS[form]
    return [(make(pair.rows[i].astype(dtype)), pair.labels[i].copy()) for i in (0, 1)]
