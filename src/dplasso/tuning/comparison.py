"""Compare two models privately, by one release of their paired differences."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dplasso.errors import DataError, ParameterError
from dplasso.ledger import Ledger
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import rounded_up
from dplasso.tuning.estimates import Metric, difference_estimate, of_rows
from dplasso.tuning.metrics import COMPARING, METRICS, difference_sums
from dplasso.tuning.scores import Scored, paid_sums, to_score


@dataclass(frozen=True)
class PrivateComparison:
    """A comparison of two models that may be released with its statement.

    Attributes
    ----------
    metric : str
        "accuracy", "log_loss" or "mae".
    value : float
        The advantage of `a` over `b`: larger accuracy or smaller loss.
    low, high, confidence : float
        Confidence interval that covers both the noise and the sampling error.
    privacy : PrivacyStatement
        The guarantee for the rows that were scored.
    """

    metric: str
    value: float
    low: float
    high: float
    confidence: float
    privacy: PrivacyStatement

    @property
    def better(self) -> str | None:
        """The better model, "a" or "b"; None if the interval contains 0."""
        return "a" if self.low > 0.0 else "b" if self.high < 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return asdict(self) | {"better": self.better, "privacy": self.privacy.to_dict()}

    def __str__(self) -> str:
        """Return the comparison in words."""
        verdict = "a is better than b" if self.better == "a" else "b is better than a"
        if self.better is None:
            verdict = "the rows do not show which of a and b is better"
        return (
            f"{verdict}: {self.metric} better by {self.value:.3f} with a ({self.confidence:.0%} "
            f"interval {self.low:.3f} to {self.high:.3f}, noise included), epsilon = "
            f"{rounded_up(self.privacy.epsilon)}"
        )


def private_comparison(
    a: Any,
    b: Any,
    X: Any,
    y: "ArrayLike | None" = None,
    epsilon: float = 0.1,
    delta: float = 1e-6,
    *,
    metric: str | None = None,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
    groups: "ArrayLike | None" = None,
    target_bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
    random_state: Any = None,
    ledger: "str | PathLike[str] | Ledger | None" = None,
) -> PrivateComparison:
    """Compare two fitted models on the same labelled rows, privately.

    The release is the noisy sum of the differences of their losses on each row. Rows that both
    models predict alike add no sampling error, so the interval is shorter than that of the
    difference of two private scores. The cost is that of one score.

    Parameters
    ----------
    a, b : estimator
        Fitted models as in `private_score`, with the same classes, labels or interval of targets.
    X, y, epsilon, delta
        As in `private_score`.
    metric : str or None, default=None
        "accuracy" (default) or "log_loss" for classes and labels, "mae" (default) for numbers.
    neighbors, rows_per_person, groups, target_bounds, confidence, random_state, ledger
        As in `private_score`.

    Returns
    -------
    PrivateComparison

    Raises
    ------
    ValueError
        For a parameter out of range, models of different targets, a label that is not a model's
        class, or NaN in X. Nothing is charged then.
    BudgetError, LedgerError
        If the ledger has too little left or cannot be used; nothing is spent.
    """
    return compared(
        [(a, X, y), (b, X, y)],
        metric=metric,
        groups=groups,
        target_bounds=target_bounds,
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
        rows_per_person=rows_per_person,
        confidence=confidence,
        random_state=random_state,
        ledger=ledger,
    )


def compared(
    pair: Sequence[tuple[Any, Any, Any]],
    *,
    metric: str | None = None,
    groups: Any = None,
    target_bounds: tuple[float, float] | None = None,
    rows_per_person: int = 1,
    **paid: Any,
) -> PrivateComparison:
    """Compare two models; each comes with the rows in the form that it takes, and the labels."""
    people = groups, rows_per_person
    a, b = (to_score(*scored, metric, target_bounds, *people, COMPARING) for scored in pair)
    _check_pair(a, b)
    losses, span = METRICS[a.metric].losses, METRICS[a.metric].span
    assert losses is not None
    assert span is not None
    sums, scorer, statement = paid_sums(
        _PAIRED,
        a.target,
        lambda: difference_sums(
            *(of_rows(losses, side.predicting, side.rows, side.target) for side in (a, b))
        ),
        "sums of the differences of two models' losses",
        rows_per_person=rows_per_person,
        by_person=a.rows.by_person,
        **paid,
    )
    value, low, high = (span(a.target) * number for number in scorer.estimate(sums))
    return PrivateComparison(a.metric, value, low, high, float(scorer.confidence), statement)


def _check_pair(a: Scored, b: Scored) -> None:
    kinds = [(side.target.many_labels, set(side.target.classes)) for side in (a, b)]
    if kinds[0] != kinds[1]:
        raise DataError("a and b must predict the same classes or labels")
    if a.target.bounds != b.target.bounds:
        raise ParameterError(
            "a and b have different intervals of the target: pass `target_bounds` for both"
        )
    if not np.array_equal(a.rows.y, b.rows.y):
        raise DataError("a and b have different rows or labels: pass the same for both")


# The three entries of a row have norm 1 at most; those of two rows differ by at most 1.8.
_PAIRED = Metric(
    sums=None,
    estimate=lambda noisy, sigma, z, _: difference_estimate(noisy, sigma, z),
    one_exchange=1.8,
)
