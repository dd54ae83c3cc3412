"""What a fit would cost, answered before there is any data."""

from dplasso.privacy.mechanisms import build_mechanism
from dplasso.privacy.statement import PrivacyStatement, make_statement


def privacy_cost(
    epsilon: float,
    delta: float,
    n_iter: int,
    neighbors: str = "add-remove",
    feature_bound: float = 1.0,
) -> PrivacyStatement:
    """Say what a fit with these settings would spend, without data.

    Parameters
    ----------
    epsilon : float
        Total privacy loss to stay within; infinity for no privacy.
    delta : float
        In (0, 1).
    n_iter : int
        Number of steps T.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        The neighbour relation.
    feature_bound : float, default=1.0
        Public bound on the magnitude of an entry.

    Returns
    -------
    PrivacyStatement
        What the statement of such a fit says, with operating-system randomness and declared
        classes: ``eps0`` is what one step may spend, ``epsilon`` what all of them do.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of range.

    Examples
    --------
    >>> cost = privacy_cost(epsilon=1.0, delta=1e-6, n_iter=1000)
    >>> round(cost.eps0, 5)
    0.01396
    """
    mechanism = build_mechanism(
        epsilon=epsilon,
        delta=delta,
        n_iter=n_iter,
        neighbors=neighbors,
        feature_bound=feature_bound,
    )
    return make_statement(mechanism, seeded=False, classes_declared=True)
