"""Predictions of named columns from all others, learnt from public rows without labels."""

import os
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, vstack
from sklearn.linear_model import Ridge

from dplasso.encoding.origin import one_hot_groups
from dplasso.errors import DataError, ParameterError
from dplasso.fit.public_knowledge import Learn, find_named, public_matrix
from dplasso.matrix.compressed import without_duplicates
from dplasso.matrix.geometry import Geometry
from dplasso.phases.intervals import PublicPredictions

# A column predicts if this many public rows have an entry in it. At most this part of the number
# of public rows predict, those with the most entries.
_FEWEST_ENTRIES, _MOST_PART = 10, 0.5
# A named column follows from the others if they leave less than this part of its variance.
_FOLLOWS = 1e-4


def learn_predictions(public_rows: Any, named: tuple[str, ...]) -> Learn:
    """Return what learns the predictions for some records."""
    if isinstance(public_rows, PublicPredictions):
        return lambda _: public_rows
    if isinstance(public_rows, Geometry | str | os.PathLike):
        raise ParameterError("`infer` needs public rows, and `public_rows` is their geometry")

    def learn(records: Any) -> PublicPredictions:
        rows = csr_array(without_duplicates(public_matrix(public_rows, records)), dtype=np.float64)
        if not np.isfinite(rows.data).all():
            raise DataError("`public_rows` has NaN or infinity")
        rows.eliminate_zeros()
        return _learnt(rows, find_named(named, records), one_hot_groups(records), named)

    return learn


def _learnt(
    rows: csr_array, names: dict[int, str], groups: Any, named: tuple[str, ...]
) -> PublicPredictions:
    columns, counts = rows.tocsc(), np.bincount(rows.indices, minlength=rows.shape[1])
    places = np.array([*names])
    baselines = _baselines(columns, counts, places, groups)
    references = np.unique(baselines[baselines >= 0])
    kept = ~np.isin(places, references)
    places, baselines = places[kept], baselines[kept]
    if not places.size:
        raise DataError("`infer` names only reference categories; name others of the variable")
    squares, means = columns.power(2).sum(axis=0), columns.mean(axis=0)
    energies = np.asarray(squares) - rows.shape[0] * np.asarray(means) ** 2
    usable = (counts >= _FEWEST_ENTRIES) & (energies > 0.0)
    usable[references] = False
    order = np.argsort(-counts, kind="stable")
    others = np.sort(order[usable[order]][: int(_MOST_PART * rows.shape[0])])
    weights, intercepts = [], np.zeros(places.size)
    remainders, entries = np.zeros(places.size), np.ones(places.size)
    for k, place in enumerate(places):
        target, own = columns[:, [place]].toarray()[:, 0], others[others != place]
        if not own.size:
            raise DataError(f"no other column has {_FEWEST_ENTRIES} entries in `public_rows`")
        # The penalty of a column is the energy of one row.
        scales = np.sqrt(counts[own] / energies[own])
        model = Ridge(1.0, solver="sparse_cg", tol=1e-8, max_iter=2_000)
        scaled = csr_array(columns[:, own] @ diags_array(scales))
        model.fit(scaled, target)
        shape = 1, rows.shape[1]
        weights.append(csr_array((model.coef_ * scales, own, [0, own.size]), shape=shape))
        intercepts[k], remainder = model.intercept_, target - model.predict(scaled)
        fault = ""
        if counts[place] < _FEWEST_ENTRIES:
            fault = f"has entries in {counts[place]:,} rows of `public_rows`"
        elif not remainder.var() > _FOLLOWS * target.var():
            fault = "follows from the other columns of `public_rows`"
        if not fault:
            remainders[k], entries[k] = np.abs(remainder).max(), np.abs(target).max()
        elif names[place] in named or places.size == 1:
            raise DataError(
                f"the column {names[place]!r} of `infer` {fault}, so its interval would say "
                "nothing",
                advice="pass more public rows, or leave the column out",
            )
    learnt = csr_array(vstack(weights))
    parts = places, learnt.indices, learnt.data, intercepts
    digest = sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    description = f"{rows.shape[0]:,} public rows without labels (digest {digest[:12]})"
    numbers = learnt, intercepts, remainders, entries, baselines
    return PublicPredictions(description, rows.shape[0], others.size, places, *numbers)


def _baselines(
    columns: Any, counts: NDArray[Any], places: NDArray[np.int64], groups: Any
) -> NDArray[np.int64]:
    """Return the reference category of each named column, -1 for none.

    It is the most frequent one in public rows, if each of these has a category of the variable.
    """
    baselines = np.full(places.size, -1)
    for group in map(list, groups):
        own = np.isin(places, group)
        if len(group) > 1 and own.any():
            per_row = np.bincount(columns[:, group].indices, minlength=columns.shape[0])
            if per_row.all():
                baselines[own] = group[int(np.argmax(counts[group]))]
    return baselines
