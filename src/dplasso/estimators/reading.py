"""What a fitted estimator's model and statement say of its task, its rows and its loss."""

from typing import Any

from dplasso.fit.targets import Labels
from dplasso.fit.task import Task
from dplasso.model.linear import Reading, reading_of
from dplasso.phases.releases import Descended


def reading(fitted: Any) -> Reading:
    """Return how a fitted estimator's model reads rows."""
    model, norm = fitted.model_, fitted.model_.params.get("row_norm", "unit")
    return reading_of(
        model.released,
        model.n_features,
        row_norm=None if norm == "unit" else float(norm),
        fit_intercept=model.params["fit_intercept"],
        feature_bound=model.statement.number("feature_bound"),
        from_prior=model.prior is not None,
    )


def task_of(fitted: Any) -> Task:
    """Return what a fitted classifier has learnt."""
    return Labels().of_classes(fitted.classes_, many_labels=fitted.privacy_.many_labels)


def loss_of(fitted: Any) -> Any:
    """Return the loss whose link makes probabilities of a fitted classifier's margins."""
    task, statement = task_of(fitted), fitted.privacy_
    by_gradients = fitted.model_.released.last(Descended) is not None
    stated = statement.find("gradients" if by_gradients else "vertices")
    bound = stated.numbers["residual_bound"]
    return task.gradient_loss(bound) if by_gradients else task.vertex_loss(bound)
