"""What a person should know of columns before a fit: raw numbers, and names taken from data."""

import warnings
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.errors import NoiseWarning, PrivacyLeakWarning
from dplasso.fit.records import store_of
from dplasso.matrix.compressed import checked
from dplasso.privacy.cautions import FOR_THE_CURATOR
from dplasso.runtime.progress import say

_ROWS = 2_000
# A column is raw numbers if its entries are on average so many bounds, or typical entries, large.
_BOUNDS = 2.0
_TYPICAL = 10.0
# Entries are small if so many of them are below this part of the LASSO's bound.
_MOST_ENTRIES, _SMALL = 0.9, 0.25
# More columns of one name before the underscore than anybody declares by hand.
_MOST_DECLARED = 50


class FirstEntries(NamedTuple):
    """Columns and absolute values of the first records' entries, and how many records these are."""

    columns: NDArray[Any]
    sizes: NDArray[np.floating]
    n_rows: int


def remark_on_entries(
    X: Any, params: Mapping[str, Any], names: NDArray[Any] | None, *, is_private: bool, aloud: bool
) -> None:
    """Warn of entries much smaller than the noise of a LASSO is made for; aloud, of raw numbers."""
    bound = params.get("feature_bound") if is_private else None
    if bound is None and not aloud:
        return
    first = first_entries(X)
    sizes = first.sizes
    most = _MOST_ENTRIES * sizes.size
    if bound is not None and np.count_nonzero(sizes < _SMALL * float(bound)) > most:
        warnings.warn(
            "most entries are far below what the noise of the LASSO is made for, "
            f"a bound of {float(bound):g}: the model may be no better than chance. Turn them "
            "into 1 (--binarize, Binarizer), give a smaller bound that is public, or take logistic "
            f"(linear) regression. {FOR_THE_CURATOR}",
            NoiseWarning,
            stacklevel=4,
        )
    hint = raw_numbers(first, params, names) if aloud else None
    if hint is not None:
        say(hint)


def raw_numbers(
    first: FirstEntries, params: Mapping[str, Any], names: NDArray[Any] | None = None
) -> str | None:
    """Return a sentence about a column of raw numbers, such as an age in years, if one is there.

    It is for the screen of the person who fits, and for nothing else.
    """
    columns, sizes, n_rows = first
    if not sizes.size:
        return None
    found, place = np.unique(columns, return_inverse=True)
    counts = np.bincount(place)
    means = np.bincount(place, sizes) / counts
    bound = params.get("feature_bound")
    limit = _TYPICAL * np.median(sizes) if bound is None else _BOUNDS * float(bound)
    (large,) = np.nonzero((means > limit) & (2 * counts >= n_rows))
    if not large.size:
        return None
    column = int(found[large[np.argmax(means[large])]])
    name = f"Column {column:,} (from 0)" if names is None else f"Column {str(names[column])!r}"
    told = (
        "is so much larger than the others that it drowns them in rows scaled to length 1"
        if bound is None
        else f"is beyond the bound {float(bound):g} in most rows and clipped to it, so it says "
        "next to nothing"
    )
    return (
        f"{name} {told}. Raw numbers need public ranges: declare them in a schema "
        f"(docs/tables.md). {FOR_THE_CURATOR}"
    )


def first_entries(X: Any) -> FirstEntries:
    """Look at the first records; nothing is said of damaged ones, which a fit refuses."""
    store, n_rows = store_of(X), min(_ROWS, X.shape[0])
    if store is not None:
        rows, values = store.rows, store.rows.values
    else:
        if getattr(X, "format", "") != "csr":
            X = csr_array(checked(X)[:_ROWS])
        rows, values = X, X.data
    end = int(rows.indptr[: n_rows + 1][-1])
    indices, values = rows.indices[:end], values[:end]
    # Of a store without values they are all the same. And a fit says what is damaged.
    if (
        not 0 < indices.size == values.size
        or not 0 <= int(indices.min()) <= int(indices.max()) < X.shape[1]
    ):
        return FirstEntries(np.zeros(0, np.int64), np.zeros(0), n_rows)
    columns = indices if store is None else store.original_column[indices]
    return FirstEntries(columns, np.abs(values), n_rows)


def warn_of_undeclared_names(names: NDArray[Any] | None) -> None:
    """Warn of names of columns that look as if they had been made of values in the data.

    `pandas.get_dummies` makes such: many of one name before an underscore, or some with a space
    after it.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in [] if names is None else map(str, names):
        head, found, value = name.partition("_")
        if found and value:
            groups[head].append(name)
    for group in groups.values():
        spaced = [name for name in group if " " in name.partition("_")[2].strip()]
        if len(group) > 1 and (spaced or len(group) > _MOST_DECLARED):
            warnings.warn(
                f"the column {(spaced or group)[0]!r} looks as if it was named after a value in "
                "the data, as get_dummies does: such names leave with the model; if nobody "
                "declared them, encode by declared categories instead (PublicEncoder)",
                PrivacyLeakWarning,
                stacklevel=4,
            )
            return
