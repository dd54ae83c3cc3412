"""Fit an estimator, with the hooks of the command line, of replays and of checkpoints."""

from typing import Any

from dplasso.frank_wolfe.solve import Progress
from dplasso.frank_wolfe.transcript import Transcript


def fit_estimator(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    progress: Progress | None = None,
    seconds: dict[str, float] | None = None,
    replay: Transcript | None = None,
    checkpoints: Any = None,
) -> Any:
    """Fit an estimator in place.

    Parameters
    ----------
    estimator : DPLassoClassifier
        Fitted in place.
    X, y
        As in its `fit`.
    progress : callable, optional
        Called between chunks with the steps done and T.
    seconds : dict, optional
        Receives the times of preparing and training, which are the curator's and no part of the
        model.
    replay : Transcript, optional
        Steps to take instead of drawing them.
    checkpoints : callable, optional
        From `dplasso.checkpoint.session.keep_checkpoints`.

    Returns
    -------
    DPLassoClassifier
        The estimator itself.
    """
    return estimator._fit(
        X, y, progress=progress, seconds=seconds, forced=replay, checkpoints=checkpoints
    )
