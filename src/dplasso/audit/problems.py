"""Small data sets to audit on: exhaustive neighbours, canaries, and empty records."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.audit.claims import Claim, Data

# Empty records beside a canary: they expose a mechanism that is scaled by the number of records.
COMPANY = 10


class Neighbourhood(NamedTuple):
    """Data sets with something in common, and the positions of those that are neighbours."""

    name: str
    data: list[Data]
    pairs: list[tuple[int, int]]


def make_data(rows: NDArray[np.float64], labels: NDArray[np.int64]) -> Data:
    """Return a data set of dense rows, whose zeros are not stored."""
    return Data(csr_array(np.asarray(rows, dtype=np.float64)), np.asarray(labels, dtype=np.int64))


def records(n_columns: int, bound: float) -> list[tuple[tuple[float, ...], int]]:
    """Return all entries in {-B, 0, B} with either label, and two records far beyond the bound."""
    ordinary = list(product((-bound, 0.0, bound), repeat=n_columns))
    beyond = [(1e30,) * n_columns, (-3.0 * bound,) + (1e300,) * (n_columns - 1)]
    return [(entries, label) for entries in ordinary + beyond for label in (0, 1)]


def neighbourhoods(claim: Claim, n_columns: int = 2) -> Iterator[Neighbourhood]:
    """Enumerate neighbours around a few small data sets.

    They are, under add-remove the base and every record added to it, under replace-one every two of
    the latter. The bases: an almost empty one, where a single record decides everything; one with a
    gradient that stands out by about two nats, where log-ratios are largest; and a mixed one.
    """
    bound = claim.feature_bound
    company = np.zeros((2, n_columns))
    # The summed gradient of one column, in records: each gives half a bound at zero weights.
    ahead = min(200, max(1, round(8.0 / claim.eps0)))
    strong = np.zeros((ahead, n_columns))
    strong[:, 0] = bound
    mixed = bound * np.array([[(i + k) % 3 - 1 for k in range(n_columns)] for i in range(3)])
    bases = (
        ("empty records", company, np.array([0, 1])),
        ("one strong column", strong, np.arange(ahead) % 8 == 0),
        ("mixed records", mixed, np.array([1, 0, 0])),
    )
    for name, rows, labels in bases:
        added = [
            make_data(np.vstack([rows, entries]), np.append(labels, label))
            for entries, label in records(n_columns, bound)
        ]
        if claim.neighbors == "add-remove":
            data = [make_data(rows, labels), *added]
            yield Neighbourhood(name, data, [(0, i) for i in range(1, len(data))])
        else:
            yield Neighbourhood(name, added, list(combinations(range(len(added)), 2)))


def canary_pair(claim: Claim) -> tuple[Data, Data]:
    """Return two neighbours, with and without a canary: a record that owns its features.

    The others are `COMPANY` empty records of both labels. Under add-remove the canary owns column 0
    and is left out of the second. Under replace-one it owns columns 0 and 1, and is replaced by a
    record of the other label that differs in the sign of column 1: a step along column 1 then
    drives their contributions to column 0 apart, to all of twice the bound.
    """
    labels = np.arange(COMPANY) % 2
    if claim.neighbors == "add-remove":
        rows = np.zeros((COMPANY, 1))
        canary = np.vstack([rows, [[claim.feature_bound]]])
        return make_data(canary, np.append(labels, 1)), make_data(rows, labels)
    rows = np.zeros((COMPANY, 2))
    one, other = ([[claim.feature_bound, side * claim.feature_bound]] for side in (1, -1))
    return (
        make_data(np.vstack([rows, one]), np.append(labels, 1)),
        make_data(np.vstack([rows, other]), np.append(labels, 0)),
    )


def many_canaries(claim: Claim, bits: NDArray[np.bool_]) -> Data:
    """Return one data set with a canary per bit: canary k has the bound in column k.

    Under add-remove the bit says who is in; under replace-one all are, and it is the label. Two
    empty records carry either label.
    """
    entries, labels = claim.feature_bound * np.eye(bits.size), bits.astype(int)
    if claim.neighbors == "add-remove":
        entries, labels = entries[bits], labels[bits]
    company = np.zeros((2, bits.size))
    return make_data(np.vstack([entries, company]), np.append(labels, [0, 1]))


def blank_data(n_columns: int) -> Data:
    """Return two empty records: all gradients are 0 at every step, whatever was drawn."""
    return make_data(np.zeros((2, n_columns)), np.array([0, 1]))
