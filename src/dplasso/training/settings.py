"""Checks of the estimator's settings, made before it looks at any data."""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from dplasso.frank_wolfe.solve import SOLVERS
from dplasso.privacy.ledger import check_ledger_settings
from dplasso.privacy.mechanism import check_mechanism
from dplasso.privacy.parameters import (
    check_delta,
    check_epsilon,
    check_feature_bound,
    check_n_iter,
    check_neighbors,
    check_positive,
)
from dplasso.selection.registry import check_selector


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that no data can make right.

    Parameters
    ----------
    settings : mapping
        The parameters of `DPLassoClassifier` by name.

    Raises
    ------
    TypeError, ValueError
        One sentence that names the parameter, what was given and what would be right.
    """
    epsilon = check_epsilon(settings["epsilon"])
    check_delta(settings["delta"])
    check_positive("l1_radius", settings["l1_radius"])
    check_n_iter(settings["n_iter"])
    check_feature_bound(settings["feature_bound"])
    check_neighbors(settings["neighbors"])
    mechanism = check_mechanism(settings["mechanism"])
    check_selector(settings["selector"], "none" if math.isinf(epsilon) else mechanism)
    solver, drift_tol, n_jobs = settings["solver"], settings["drift_tol"], settings["n_jobs"]
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    named = drift_tol is None or (isinstance(drift_tol, str) and drift_tol == "auto")
    if not named and not (isinstance(drift_tol, Real) and 0 <= float(drift_tol) < math.inf):
        raise ValueError(
            f"drift_tol must be 'auto', None or a finite number >= 0, got {drift_tol!r}"
        )
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0 (-1 for all cores), got {n_jobs!r}"
        )
    check_ledger_settings(settings)
