"""The black-box audit of fits that release noisy gradients, by the weight of a canary.

The noise is continuous, so no distribution can be enumerated; what is attacked is the release of
the public estimator, and with it everything that a user's fit goes through.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dplasso.audit.black_box import CANARY, Progress, compare
from dplasso.audit.claims import Claim, Data, claim_of
from dplasso.audit.problems import canary_pair
from dplasso.audit.report import Report
from dplasso.audit.suite import Outcome
from dplasso.estimators.fitting import method_of
from dplasso.estimators.linear_models import DPLassoClassifier, DPLogisticRegression

FitWeights = Callable[[Data], Any]


def weights_target(
    *, epsilon: float, delta: float, neighbors: str, n_iter: int, method: str = "logistic"
) -> tuple[Claim, FitWeights]:
    """Return the claim of an estimator ("lasso": one that refits), and its weights by fit(data)."""
    kind = DPLogisticRegression if method == "logistic" else DPLassoClassifier
    # As by default, private counts included; but the constant entry would hide the canary.
    options: dict[str, Any] = {"n_iter": n_iter, "fit_intercept": False, "classes": (0, 1)}
    estimator = kind(epsilon, delta, neighbors=neighbors, **options)

    def fit(data: Data) -> Any:
        coefficients = estimator.fit(data.X, data.y).coef_
        return (coefficients if method == "logistic" else coefficients.toarray())[0]

    return claim_of(method_of(estimator).cost()), fit


def audit_weights(
    claim: Claim, fit: FitWeights, runs: int, false_alarm: float, progress: Progress | None = None
) -> Outcome:
    """Bound epsilon from below by the weight of a canary's own column; at least 8 runs."""
    weights = np.empty((2, runs))
    for place, data in enumerate(canary_pair(claim)):
        for run in range(runs):
            weights[place, run] = fit(data)[CANARY]
            if progress is not None:
                progress(place * runs + run + 1, 2 * runs)
    name = "canary: noisy gradients"
    attack, roc = compare(
        claim, [(weights[0], weights[1])], ("weight",), false_alarm, (runs, runs // 2), name
    )
    return Outcome(Report(claim, (attack,)), roc, attack)
