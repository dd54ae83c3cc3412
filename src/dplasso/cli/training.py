"""Training under a progress bar."""

import warnings
from typing import TYPE_CHECKING, Any

from dplasso.cli.output import Bars
from dplasso.errors import PrivacyLeakWarning

if TYPE_CHECKING:
    from dplasso import DPLassoClassifier


def train_with_bar(
    estimator: "DPLassoClassifier",
    X: Any,
    y: Any,
    bars: Bars,
    label: str,
    checkpoints: Any = None,
) -> dict[str, float]:
    """Fit an estimator under a progress bar.

    Parameters
    ----------
    estimator : DPLassoClassifier
        Fitted in place.
    X : sparse array, shape (n_samples, n_features)
        The rows.
    y : ndarray, shape (n_samples,)
        Their labels.
    bars : Bars
        Where progress is shown.
    label : str
        What the bar says.
    checkpoints : callable, optional
        From `dplasso.checkpoint.session.keep_checkpoints`.

    Returns
    -------
    dict
        Seconds spent: ``prepare`` and ``train``. They depend on the data: for the curator only.
    """
    seconds: dict[str, float] = {}
    with bars.task(label) as progress, warnings.catch_warnings():
        warnings.filterwarnings("always", category=PrivacyLeakWarning)
        hooks = {} if checkpoints is None else {"checkpoints": checkpoints}
        estimator._fit(X, y, progress=progress, seconds=seconds, **hooks)
    return seconds
