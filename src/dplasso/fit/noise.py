"""What is said before or early in a fit that can find nothing: by public numbers and a count.

No record is looked at: N is public, or was counted privately (docs/lasso.md, docs/logistic.md).
"""

from dplasso.fit.column_plan import FEWEST_REFITTED, columns_to_be_found
from dplasso.privacy.budget import Budget

# Of rows whose words tell the class about as well as in texts, a dense fit is right rarely more
# often than guessing below this signal (docs/logistic.md).
_LEAST_SIGNAL = 5.0


def findable_columns(
    rho: float, n_vertices: int, n_records: float, n_outputs: int, n_features: int
) -> float:
    """Return how many of the columns drawn can be expected to stand out, from public numbers.

    At the noise of T draws the t-th best column still does where its gradient exceeds the largest
    of 2D noises. Of K classes a column tells one from the others, and its gradient is 2/K of what
    it is of two.
    """
    found = columns_to_be_found(rho, n_records, n_outputs * n_features)
    strong = 2.0 * found / max(2, n_outputs)
    return min(float(n_vertices), strong * strong / n_vertices)


def columns_warning(
    findable: float, n_iter: int | None, n_records: float, n_features: int, epsilon: float
) -> str:
    """Warn if almost no column can be found; `n_iter` were asked for."""
    fewest = min(FEWEST_REFITTED, n_iter or FEWEST_REFITTED, max(1, n_features // 2))
    if findable >= fewest:
        return ""
    return (
        f"with {n_records:,.0f} records, {n_features:,} columns and epsilon={epsilon:g}, about "
        f"{findable:.2g} columns can be told from noise, and only if they tell the label well: the "
        "model may be no better than chance; more records, fewer columns or a larger epsilon help, "
        "or logistic (linear) regression in place of the LASSO"
    )


def gradients_warning(budget: Budget, mu: float, n_records: float, n_outputs: int) -> str:
    """Say that noise outweighs what so many records can tell, where that is so.

    The signal is what N rows that agree add to a gradient, in units of the noise of all steps; of
    K classes each has its part of the rows.

    `mu`: what the gradients spend.
    """
    told = n_records * mu / budget.moved(1.0)
    if told / max(2, n_outputs) >= _LEAST_SIGNAL:
        return ""
    of = f" of {n_outputs:,} classes" if n_outputs > 2 else ""
    return (
        f"with {n_records:,.0f} records{of} and epsilon={budget.epsilon:g}, the noise outweighs "
        "what the records can tell: the model may be no better than chance; more records or a "
        "larger epsilon help"
    )
