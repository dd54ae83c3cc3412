"""What the command line does with an estimator: check it, then train it under a progress bar."""

import warnings
from typing import TYPE_CHECKING, Any

from dplasso.cli.output import Bars
from dplasso.errors import PrivacyLeakWarning

if TYPE_CHECKING:
    from dplasso import DPLassoClassifier


def check_before_reading(estimator: "DPLassoClassifier", *, paid: bool = False) -> None:
    """Refuse settings that no data can make right, and a fit that its ledger cannot pay.

    `classes` of the estimator may still be missing; `paid` means that the ledger was charged
    already, as for a fit that is resumed.
    """
    from dplasso.privacy.ledger import check_affordable
    from dplasso.training.lasso import lasso_mechanism
    from dplasso.training.settings import lasso_settings

    settings = lasso_settings(estimator.get_params(deep=False))
    # Finds a delta too small for n_iter; the number of rows does not matter for that.
    mechanism = lasso_mechanism(settings)
    if not paid:
        check_affordable(settings.ledger, settings.dataset, mechanism)


def train_with_bar(
    estimator: "DPLassoClassifier",
    X: Any,
    y: Any,
    bars: Bars,
    label: str,
    checkpoints: Any = None,
) -> dict[str, float]:
    """Fit an estimator in place under a progress bar that says `label`.

    Returns
    -------
    dict
        Seconds spent: ``prepare`` and ``train``; ``compile`` is the part of both that the compiler
        took. They depend on the data: for the curator only.
    """
    from dplasso.estimators.fitting import fit_estimator
    from dplasso.training.train import Hooks

    seconds: dict[str, float] = {}
    before = bars.compiled.seconds
    with bars.task(label) as progress, warnings.catch_warnings():
        warnings.filterwarnings("always", category=PrivacyLeakWarning)
        fit_estimator(estimator, X, y, Hooks(progress, seconds, checkpoints=checkpoints))
    return seconds | {"compile": bars.compiled.seconds - before}
