"""Scores and searches of several classes and of many labels: defaults, and what goes together."""

import numpy as np
import pytest
from tests.tuning.test_metrics import LETTERS, Given, population

from dplasso import DPLinearRegression, DPLogisticRegression, PrivateSearch, private_score
from dplasso.errors import DataError
from dplasso.tuning.estimates import MANY_LABELS, SEVERAL_CLASSES, Target
from dplasso.tuning.scores import target_of


def test_the_default_metric_fits_the_target():
    p, y = population(SEVERAL_CLASSES, 2000)
    assert private_score(Given(SEVERAL_CLASSES), p, y, 5.0).metric == "accuracy"
    p, y = population(MANY_LABELS, 2000)
    score = private_score(Given(MANY_LABELS), p, y, 5.0)
    assert score.metric == "auc"
    assert [one["label"] for one in score.to_dict()["by_class"]] == list(LETTERS)
    X = np.random.default_rng(0).normal(size=(800, 5))
    for labels, estimator, metric in (
        (X[:, 0] > 0, DPLogisticRegression(20.0), "auc"),
        (np.digitize(X[:, 0], [-0.5, 0.5]), DPLogisticRegression(20.0), "accuracy"),
        (X[:, 0], DPLinearRegression(20.0, target_bounds=(-4, 4)), "mae"),
    ):
        fitted = estimator.fit(X, labels)
        assert private_score(fitted, X, labels).metric == metric
        search = PrivateSearch(estimator, {"max_weights": [2, 4]}, 20.0, tries=2)
        search.fit(X, labels)
        assert 0.0 <= search.best_score_.low <= search.best_score_.value
        with pytest.raises(
            ValueError, match=r"metric must be one of accuracy, .*got 'calibration'"
        ):
            search.set_params(metric="calibration").fit(X, labels)


def test_a_model_of_labels_and_rows_of_classes_do_not_go_together():
    X = np.random.default_rng(0).normal(size=(300, 5))
    Y = (X[:, :3] > 0).astype(int)
    many = DPLogisticRegression(20.0).fit(X, Y)
    with pytest.raises(DataError, match="predicts 3 labels for each row, but y has one label"):
        private_score(many, X, Y[:, 0], 1.0)
    with pytest.raises(DataError, match="predicts 3 labels for each row, but y has 2 labels"):
        private_score(many, X, Y[:, :2], 1.0)
    with pytest.raises(DataError, match="must hold 0 and 1 only: row 1"):
        private_score(many, X, Y + 1, 1.0)
    one = DPLogisticRegression(20.0).fit(X, Y[:, 0])
    with pytest.raises(DataError, match="predicts one label for each row, but y has 3"):
        private_score(one, X, Y, 1.0)
    assert target_of(many, many.classes_, 3) == Target((0, 1, 2), many_labels=True)
