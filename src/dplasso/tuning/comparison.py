"""Whether one model predicts better than another, as one private release on paired differences."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
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
    """By how much one model is better than another; it may be released with its statement.

    Attributes
    ----------
    metric : str
        "accuracy", "log_loss" or "mae".
    value : float
        By how much the accuracy of `a` is larger than that of `b`, or its loss smaller.
    low, high, confidence : float
        Confidence interval that covers both the noise and the sampling error.
    privacy : PrivacyStatement
        What the comparison guarantees about the rows that it was computed on.
    models : tuple of str
        Digests of what `a` and `b` released; empty for another package's.
    """

    metric: str
    value: float
    low: float
    high: float
    confidence: float
    privacy: PrivacyStatement
    models: tuple[str, str] = ("", "")

    @property
    def better(self) -> str | None:
        """The better model, "a" or "b"; None where the interval holds 0."""
        return "a" if self.low > 0.0 else "b" if self.high < 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as values that JSON can hold."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {"better": self.better, "models": list(self.models)}
        return values | {"privacy": self.privacy.to_dict()}

    def __str__(self) -> str:
        """Return the comparison in words."""
        found = "a is better than b" if self.better == "a" else "b is better than a"
        if self.better is None:
            found = "the rows do not tell which of a and b is better"
        return (
            f"{found}: {self.metric} better by {self.value:.3f} with a ({self.confidence:.0%} "
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

    The release is about the difference of their losses, row by row. Rows that both models predict
    alike add no sampling error, so the interval is shorter than the difference of two private
    scores, and costs one of them.

    Parameters
    ----------
    a, b : estimator
        Fitted, as in `private_score`; they predict the same classes, labels or interval of numbers.
    X : sparse or dense matrix, shape (N, D), or a store
        The rows; of a pipeline whatever its first step takes.
    y : array-like, shape (N,) or (N, L), default=None
        Labels or targets, or 0 and 1 for each of L labels. Only a store may go without.
    epsilon : float, default=0.1
        Privacy loss, positive and finite.
    delta : float, default=1e-6
        In (0, 1).
    metric : str or None, default=None
        For classes and labels "accuracy" (default) or "log_loss", for numbers "mae" (default): a
        mean of bounded losses of single rows.
    neighbors, rows_per_person, groups, target_bounds, confidence, random_state, ledger
        As in `private_score`.

    Returns
    -------
    PrivateComparison

    Raises
    ------
    ValueError
        For a parameter out of range, models of different targets, a label that a model does not
        know, or NaN in X; all found before anything is charged.
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
    """Compare two models, each with the same rows as it takes them and their labels."""
    people = groups, rows_per_person
    a, b = (to_score(*one, metric, target_bounds, *people, COMPARING) for one in pair)
    _check_pair(a, b)
    losses, span = METRICS[a.metric].losses, METRICS[a.metric].span
    assert losses is not None
    assert span is not None
    sums, scorer, statement = paid_sums(
        _PAIRED,
        a.target,
        lambda: difference_sums(
            *(of_rows(losses, one.predicting, one.rows, one.target) for one in (a, b))
        ),
        "sums of the differences of two models' losses",
        rows_per_person=rows_per_person,
        **paid,
    )
    value, low, high = (span(a.target) * number for number in scorer.estimate(sums))
    confidence, models = float(scorer.confidence), (a.digest, b.digest)
    return PrivateComparison(a.metric, value, low, high, confidence, statement, models)


def _check_pair(a: Scored, b: Scored) -> None:
    kinds = [(one.target.many_labels, set(one.target.classes)) for one in (a, b)]
    if kinds[0] != kinds[1]:
        raise DataError("a and b predict different classes or labels: compare models of the same")
    if a.target.bounds != b.target.bounds:
        raise ParameterError(
            "a and b have different intervals of the target: give `target_bounds` for both"
        )
    if not np.array_equal(a.rows.y, b.rows.y):
        raise DataError("a and b are given different rows or labels: give both the same")


# A row's three entries have norm 1 at most; of two rows only the first can differ by 1.8.
_PAIRED = Metric(
    sums=lambda a, b, _, __: difference_sums(a, b),
    estimate=lambda noisy, sigma, z, _: difference_estimate(noisy, sigma, z),
    one_exchange=1.8,
)
