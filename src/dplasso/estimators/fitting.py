"""Fit an estimator: what to say of its columns before, and the attributes that its model sets."""

import math
import os
import warnings
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from dplasso.cluster import Engine
from dplasso.errors import NoiseWarning, PrivacyLeakWarning
from dplasso.fit.descent import GradientDescent
from dplasso.fit.method import Method
from dplasso.fit.records import LocalRecords, Records, checked_weights, local_records, store_of
from dplasso.fit.run import Hooks, run
from dplasso.fit.task import Labels
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.matrix.compressed import checked
from dplasso.model import Model
from dplasso.model.inference import inference_of
from dplasso.model.linear import counted_records, steps_of
from dplasso.model.weights import linear_part
from dplasso.phases.releases import Drawn
from dplasso.privacy.wording import FOR_THE_CURATOR
from dplasso.runtime.compilation import announce_compilation, say_once
from dplasso.runtime.progress import SILENT, progress_bar, say

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
    """Warn of entries much smaller than the noise of draws is made for; aloud, of raw numbers."""
    bound = entry_bound(params) if is_private else None
    if bound is None and not aloud:
        return
    first = first_entries(X)
    sizes = first.sizes
    most = _MOST_ENTRIES * sizes.size
    if bound is not None and np.count_nonzero(sizes < _SMALL * float(bound)) > most:
        warnings.warn(
            "most entries are far below what the noise of Frank-Wolfe is made for, "
            f"a bound of {float(bound):g}: the model may be no better than chance. Turn them "
            "into 1 (--binarize, Binarizer), give a smaller bound that is public, or take logistic "
            f"(linear) regression. {FOR_THE_CURATOR}",
            NoiseWarning,
            stacklevel=4,
        )
    hint = raw_numbers(first, params, names) if aloud else None
    if hint is not None:
        say(hint)


def entry_bound(params: Mapping[str, Any]) -> float | None:
    """Return the bound that entries are clipped to; None if a fit scales rows, as a LASSO may."""
    return params.get("feature_bound") if "l1_radius" in params else None


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
    bound = entry_bound(params)
    limit = _TYPICAL * np.median(sizes) if bound is None else _BOUNDS * float(bound)
    (large,) = np.nonzero((means > limit) & (2 * counts >= n_rows))
    if not large.size:
        return None
    column = int(found[large[np.argmax(means[large])]])
    name = f"Column {column:,} (from 0)" if names is None else f"Column {str(names[column])!r}"
    remark = (
        "is so much larger than the others that it drowns them in rows scaled to length 1"
        if bound is None
        else f"is beyond the bound {float(bound):g} in most rows and clipped to it, so it says "
        "next to nothing"
    )
    return (
        f"{name} {remark}. Raw numbers need public ranges: declare them in a schema "
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
    return FirstEntries(indices, np.abs(values), n_rows)


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


# Fitted attributes that not every fit has.
_OPTIONAL = (
    *("history_", "work_", "feature_names_in_"),
    *("transcript_", "coef_standard_error_", "column_scale_", "n_records_", "inference_"),
)


def method_of(estimator: Any) -> Method:
    """Return an estimator's method with its parameters, checked whatever data they meet."""
    method: Method = estimator._method.from_params(estimator.get_params(deep=False))
    return method


def fit_estimator(
    estimator: Any,
    X: Any,
    y: Any = None,
    hooks: Hooks | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    engine: Engine | None = None,
) -> Any:
    """Fit an estimator in place and return it; if the fit fails, it stays as it was.

    Without a progress hook, `verbose` shows a bar, or says that kernels are compiled.
    """
    hooks = hooks or Hooks()
    with ExitStack() as shown:
        if estimator.verbose and hooks.progress is None:
            hooks = replace(hooks, progress=shown.enter_context(progress_bar("training")))
            shown.enter_context(announce_compilation(say))
        elif estimator.verbose is None and hooks.progress is None:
            shown.enter_context(announce_compilation(lambda _: say_once(), after=SILENT))
        method = method_of(estimator)
        records: Records
        if engine is None:
            records = _in_process(estimator, method, X, y, groups, sample_weight)
        else:
            from dplasso.fit.partitioned import cluster_records

            of_workers = cluster_records(
                estimator,
                X,
                y,
                engine,
                method,
                groups=groups,
                sample_weight=sample_weight,
                progress=hooks.copied or (_say_copied if estimator.verbose else None),
            )
            shown.enter_context(of_workers.workers)
            records = of_workers
        n_features = records.shape[1]
        check_columns_fit(estimator, n_features)
        warn_of_undeclared_names(records.feature_names)
        try:
            model, work = run(method, records, hooks)
        except MemoryError as error:
            if n_features <= MOST_DENSE:
                raise
            raise MemoryError(f"{error}; {_cure(n_features)}") from error
    set_fitted(estimator, model)
    if work is not None:
        estimator.work_ = work
    return estimator


def _in_process(
    estimator: Any, method: Method, X: Any, y: Any, groups: Any, sample_weight: Any
) -> LocalRecords:
    """Return the records of one process, checked, of each person no more rows than may enter."""
    records = local_records(estimator, X, y, takes_matrix=isinstance(method.targets, Labels))
    settings = {"is_private": method.is_private, "aloud": bool(estimator.verbose)}
    remark_on_entries(
        records.X, estimator.get_params(deep=False), records.feature_names, **settings
    )
    if sample_weight is not None:
        weights = checked_weights(sample_weight, len(records.y), method.weight_bound)
        records = replace(records, weights=weights)
    return records.limited(groups, method.rows_per_person)


def _say_copied(done: int, total: int) -> None:
    say(f"copied {done / 1e6:,.1f} of {total / 1e6:,.1f} MB from object storage")


def check_columns_fit(estimator: Any, n_features: int) -> None:
    """Raise MemoryError for more columns than this machine has memory for, by public numbers alone.

    Where memory is promised beyond what there is, asking for it succeeds, and using it ends the
    process.
    """
    # A search may be around another package's estimator.
    each = getattr(estimator, "_method", GradientDescent).column_bytes
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return
    if each * n_features > memory:
        raise MemoryError(
            f"at least {each * n_features / 1e9:,.3g} GB are needed, and this machine has "
            f"{memory / 1e9:,.3g} GB; {_cure(n_features)}"
        )


def _cure(n_features: int) -> str:
    return (
        f"a fit needs a few numbers for each of the {n_features:,} columns: hash them to fewer "
        "first, for example to 2^24 (docs/data.md)"
    )


def set_fitted(estimator: Any, model: Model) -> None:
    """Set the fitted attributes, all of them functions of the release and public values."""
    for name in _OPTIONAL:
        estimator.__dict__.pop(name, None)
    drawn, linear = model.released.last(Drawn), model.linear
    coefficients, intercept, error = linear_part(model)
    sparse = not isinstance(coefficients, np.ndarray)
    found = {
        "model_": model,
        "coef_": SparseWeights(coefficients) if sparse else coefficients,
        "intercept_": intercept,
        "coef_standard_error_": error,
        "column_scale_": linear.scales,
        "inference_": inference_of(model),
        "classes_": model.classes if model.classes.size else None,
        "n_iter_": steps_of(model.released),
        "transcript_": None if drawn is None else Transcript(drawn.vertex, drawn.sign),
        "n_records_": counted_records(model.released, math.isfinite(model.statement.mu)),
        "n_features_in_": model.n_features,
        "privacy_": model.statement,
        "feature_names_in_": model.feature_names,
        "history_": model.history,
    }
    vars(estimator).update({name: value for name, value in found.items() if value is not None})


# Columns beyond this are too many to write out.
MOST_DENSE = 10**8


def check_writable_out(n_columns: int) -> None:
    """Refuse to write out a zero for every column where there are too many.

    Raises
    ------
    ValueError
        If there are more than 10^8.
    """
    if n_columns > MOST_DENSE:
        raise ValueError(
            f"the weights of {n_columns:,} columns do not fit an array; model.weights() lists "
            "those that are not zero, and coef_.indices and coef_.data hold them"
        )


def _dense(self: Any, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
    """Return the array that numpy's functions work on; numpy takes a sparse array for one object.

    So ``np.argsort(coef_[0])``, which would be ``[0]``, orders all columns, and is refused where
    there are too many.
    """
    if copy is False:
        raise ValueError("a sparse array has no dense memory to share")
    check_writable_out(self.shape[-1])
    dense: NDArray[Any] = self.toarray()
    return dense if dtype is None else dense.astype(np.dtype(dtype), copy=False)


class SparseRow(coo_array):
    """One row of `SparseWeights`."""

    __array__ = _dense


class SparseWeights(csr_array):
    """A csr_array that numpy's functions read as the matrix it is."""

    __array__ = _dense

    def __getitem__(self, key: Any) -> Any:
        """Return an entry or a part; a row stays readable for numpy."""
        part = super().__getitem__(key)
        return SparseRow(part) if isinstance(part, coo_array) else part
