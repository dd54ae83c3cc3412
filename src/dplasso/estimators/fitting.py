"""Fit an estimator and set its fitted attributes: the one place where a model becomes them."""

import math
import os
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from dplasso.cluster import Engine
from dplasso.estimators.coefficients import MOST_DENSE, SparseWeights
from dplasso.estimators.hints import remark_on_entries, warn_of_undeclared_names
from dplasso.fit.descent import GradientDescent
from dplasso.fit.hooks import Hooks
from dplasso.fit.method import Method
from dplasso.fit.record_weights import checked_weights
from dplasso.fit.records import LocalRecords, Records, local_records
from dplasso.fit.run import run
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.model import Model
from dplasso.model.inference import inference_of
from dplasso.model.linear import counted_records, steps_of
from dplasso.model.weights import linear_part
from dplasso.phases.releases import Drawn
from dplasso.runtime.compilation import announce_compilation, say_once
from dplasso.runtime.progress import SILENT, progress_bar, say

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
    records = local_records(estimator, X, y, takes_matrix=method.targets.takes_matrix)
    told = {"is_private": method.is_private, "aloud": bool(estimator.verbose)}
    remark_on_entries(records.X, estimator.get_params(deep=False), records.feature_names, **told)
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
