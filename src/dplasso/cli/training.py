"""What the command line does with an estimator: check it, then train it under a progress bar."""

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from dplasso.cli.output import Bars
from dplasso.errors import PrivacyLeakWarning

if TYPE_CHECKING:
    from dplasso.estimators.load import Estimator


def check_before_reading(estimator: "Estimator", *, paid: bool = False) -> None:
    """Refuse settings that no data can make right, and a fit that its ledger cannot pay.

    `classes` of the estimator may still be missing; `paid` means that the ledger was charged
    already, as for a fit that is resumed.
    """
    from dplasso.estimators.fitting import method_of
    from dplasso.ledger import check_affordable

    method = method_of(estimator)
    # Finds a delta too small for n_iter; the size of the data does not matter for that.
    mechanism = method.cost()
    if not paid:
        check_affordable(method.ledger, method.dataset, mechanism)


def train_with_bar(
    estimator: "Estimator",
    X: Any,
    y: Any,
    bars: Bars,
    label: str,
    checkpoints: Any = None,
    groups: Any = None,
    engine: Any = None,
) -> dict[str, float]:
    """Fit an estimator in place under a progress bar that says `label`.

    Returns: seconds spent: ``prepare`` and ``train``; ``compile`` is the part of both that the
    compiler took. They depend on the data: for the curator only.
    """
    from dplasso.estimators.fitting import fit_estimator
    from dplasso.fit.hooks import Hooks

    seconds: dict[str, float] = {}
    before = bars.compiled.seconds
    with bars.task(label) as progress, bars.stages() as stage, warnings.catch_warnings():
        warnings.filterwarnings("always", category=PrivacyLeakWarning)
        copied = partial(stage, "copying stores")
        hooks = Hooks(progress, seconds, checkpoints=checkpoints, copied=copied)
        fit_estimator(estimator, X, y, hooks, groups, engine=engine)
    return seconds | {"compile": bars.compiled.seconds - before}
