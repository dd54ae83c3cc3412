"""Fit an estimator: a warning about its columns, the fit, and the fitted attributes."""

import os
import warnings
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from dplasso.encoding.origin import refuse_lost_edges, warn_of_draft
from dplasso.errors import PrivacyLeakWarning
from dplasso.fit.method import Method
from dplasso.fit.public_knowledge import refuse_private
from dplasso.fit.records import Records, checked_weights, local_records
from dplasso.fit.run import Hooks, run
from dplasso.fit.task import Labels
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.model import Model
from dplasso.model.inference import inference_of
from dplasso.model.linear import steps_of
from dplasso.model.weights import linear_part
from dplasso.phases.releases import Drawn
from dplasso.runtime.compilation import announce_compilation, say_once
from dplasso.runtime.progress import SILENT, progress_bar, say

if TYPE_CHECKING:
    # Fits in one process do not load it.
    from dplasso.cluster import Engine

# Nobody declares more columns than this by hand with the same name before the underscore.
_MOST_DECLARED = 50


def warn_of_undeclared_names(names: NDArray[Any] | None) -> None:
    """Warn of names of columns that look as if `pandas.get_dummies` generated them from values."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in [] if names is None else map(str, names):
        head, underscore, value = name.partition("_")
        if underscore and value:
            groups[head].append(name)
    for group in groups.values():
        spaced = [name for name in group if " " in name.partition("_")[2].strip()]
        if len(group) > 1 and (spaced or len(group) > _MOST_DECLARED):
            warnings.warn(
                f"the column {(spaced or group)[0]!r} looks as if get_dummies named it after a "
                "value in the data, and the model contains these names; unless they were declared, "
                "encode declared categories instead (PublicEncoder)",
                PrivacyLeakWarning,
                stacklevel=4,
            )
            return


def method_of(estimator: Any) -> Method:
    """Return an estimator's method with its parameters, checked independently of data."""
    method: Method = estimator._method.from_params(estimator.get_params(deep=False))
    return method


def fit_estimator(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    hooks: Hooks | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    engine: "Engine | None" = None,
    records: Records | None = None,
) -> Any:
    """Fit an estimator in place and return it; a failed fit leaves it unchanged.

    `records`: checked before, in place of X and y.
    """
    hooks = hooks or Hooks()
    with ExitStack() as shown:
        if estimator.verbose and hooks.progress is None:
            progress = shown.enter_context(progress_bar("training"))
            hooks = replace(hooks, progress=progress, copied=hooks.copied or _say_copied)
            shown.enter_context(announce_compilation(say))
        elif estimator.verbose is None and hooks.progress is None:
            shown.enter_context(announce_compilation(lambda _: say_once(), after=SILENT))
        method = method_of(estimator)
        refuse_private(estimator.get_params(deep=False), X)
        refuse_lost_edges(X)
        if engine is not None:
            from dplasso.fit.partitioned import cluster_records

            options = {"groups": groups, "sample_weight": sample_weight}
            records = cluster_records(estimator, X, y, engine, method, hooks.copied, **options)
            shown.callback(records.workers.close)
        elif records is None:
            local = local_records(estimator, X, y, takes_matrix=isinstance(method.targets, Labels))
            if sample_weight is not None:
                weights = checked_weights(sample_weight, len(local.y), method.is_private)
                local = replace(local, weights=weights)
            records = local.limited(groups, method.rows_per_person)
        n_features = records.shape[1]
        check_columns_fit(estimator, n_features)
        warn_of_undeclared_names(records.feature_names)
        warn_of_draft(records.origin)
        try:
            model, noted = run(method, records, hooks)
        except MemoryError as error:
            if n_features <= MOST_DENSE:
                raise
            raise MemoryError(f"{error}; {_cure(n_features)}") from error
    set_fitted(estimator, model)
    vars(estimator).update(noted)
    return estimator


def _say_copied(done: int, total: int) -> None:
    say(f"copied {done / 1e6:,.1f} of {total / 1e6:,.1f} MB from object storage")


def check_columns_fit(estimator: Any, n_features: int) -> None:
    """Raise MemoryError if the columns need more memory than this machine has.

    An allocation may succeed without enough memory, and its use then ends the process.
    """
    each = estimator._method.column_bytes
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return
    if each * n_features > memory:
        raise MemoryError(
            f"the fit needs at least {each * n_features / 1e9:,.3g} GB of memory, but this machine "
            f"has {memory / 1e9:,.3g} GB; {_cure(n_features)}"
        )


def _cure(n_features: int) -> str:
    return (
        f"a fit needs a few numbers for each of the {n_features:,} columns: hash them to fewer "
        "first, for example to 2^24 (docs/data.md)"
    )


def set_fitted(estimator: Any, model: Model) -> None:
    """Set the fitted attributes, which depend only on releases and public values."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)
    drawn, linear = model.released.last(Drawn), model.linear
    coefficients, intercept, error = linear_part(model)
    sparse = not isinstance(coefficients, np.ndarray)
    attributes = {
        "model_": model,
        "coef_": SparseWeights(coefficients) if sparse else coefficients,
        "intercept_": intercept,
        "coef_standard_error_": error,
        "column_scale_": linear.scales,
        "column_center_": linear.centres,
        "inference_": inference_of(model),
        "classes_": model.classes if model.classes.size else None,
        "n_iter_": steps_of(model.released),
        "transcript_": None if drawn is None else Transcript(drawn.vertex, drawn.sign),
        "n_records_": model.n_records,
        "n_features_in_": model.n_features,
        "privacy_": model.statement,
        "feature_names_in_": model.feature_names,
    }
    vars(estimator).update({name: value for name, value in attributes.items() if value is not None})


# Largest number of columns for a dense array of weights.
MOST_DENSE = 10**8


def check_writable_out(n_columns: int) -> None:
    """Raise ValueError if there are too many columns for a dense array of weights."""
    if n_columns > MOST_DENSE:
        raise ValueError(
            f"there are too many columns ({n_columns:,}) for a dense array of weights; use "
            "model.weights(), or coef_.indices and coef_.data, for the non-zero weights"
        )


def _dense(self: Any, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
    """Convert to a dense array for numpy, which would treat a sparse array as a single object."""
    if copy is False:
        raise ValueError("a sparse array has no dense memory to share")
    check_writable_out(self.shape[-1])
    dense: NDArray[Any] = self.toarray()
    return dense if dtype is None else dense.astype(np.dtype(dtype), copy=False)


class SparseRow(coo_array):
    """One row of `SparseWeights`."""

    __array__ = _dense


class SparseWeights(csr_array):
    """A csr_array that numpy's functions convert to a dense matrix."""

    __array__ = _dense

    def __getitem__(self, key: Any) -> Any:
        """Return an entry or a part; numpy can read a row."""
        part = super().__getitem__(key)
        return SparseRow(part) if isinstance(part, coo_array) else part
