"""A public model, however it is given, becomes weights of these columns, classes and targets."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dplasso import DPLinearRegression, DPLogisticRegression, ModelFileError, PublicEncoder, load
from schemas import Categories, Schema
from small_fits import short_runs

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 4)), columns=list("abcd"))
Y = np.where(X["a"] > 0, "yes", "no")
THREE = np.arange(60) % 3
TWO = ("no", "yes")


def records(names=None, n=None, schema=None):
    """Return a few rows without entries, with names of columns or a schema that made them."""
    if schema is not None:
        columns = {column for part in schema.parts for column in part.columns}
        rows = pd.DataFrame(dict.fromkeys(columns, ["eyes"] * 10))
        return PublicEncoder(schema).transform(rows)
    n = len(names) if n is None else n
    rows = np.zeros((10, n))
    return rows if names is None else pd.DataFrame(rows, columns=list(names))


def started(prior, classes=TWO, bounds=None, where=None, **params):
    """Return the prior that a fit of these classes, or of numbers in an interval, starts from."""
    where = records("abcd") if where is None else where
    known = {"prior": prior, "random_state": 0} | params
    if bounds is not None:
        model, y = DPLinearRegression(target_bounds=bounds, **known), np.full(10, bounds[0])
    else:
        model, y = DPLogisticRegression(classes=classes, **known), np.resize(classes, 10)
    with short_runs():
        return model.fit(where, y).model_.prior


def refused(words, prior, classes=TWO, bounds=None, where=None, **params):
    with pytest.raises((ValueError, TypeError), match=re.escape(words)) as caught:
        started(prior, classes, bounds, where, **params)
    assert "\n" not in str(caught.value)


# --- what may be given ---------------------------------------------------------------------------


def test_a_model_of_scikit_learn_is_matched_by_the_names_of_its_columns():
    model = LogisticRegression().fit(X[["d", "a", "b"]], Y)
    prior = started(model, where=records("abxd"))
    d, a, b = model.coef_[0]
    np.testing.assert_array_equal(prior.weights, [[a, b, 0.0, d]])
    np.testing.assert_array_equal(prior.intercept, model.intercept_)
    told = "a LogisticRegression of scikit-learn, 3 of 4 columns matched by name"
    assert prior.source == told
    assert started(model, where=records("axyd")).source.endswith(
        "2 of 4 columns matched by name, 1 of its own left out"
    )


def test_without_names_the_columns_are_taken_in_their_order():
    model = LogisticRegression().fit(X, Y)
    prior = started(model, where=records(n=4))
    np.testing.assert_array_equal(prior.weights, model.coef_)
    assert prior.source.endswith("all 4 columns in their order")
    refused("prior has 4 columns and the data have 5", model, where=records(n=5))


def test_a_pipeline_is_the_model_that_it_ends_in_with_the_names_of_the_step_before():
    texts = ["good film", "bad film", "good plot", "bad plot"] * 10
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, [1, 0] * 20)
    prior = started(model, [0, 1], where=records(["plot", "good", "new"]))
    words = dict(zip(model[0].get_feature_names_out(), model[1].coef_[0], strict=True))
    np.testing.assert_array_equal(prior.weights, [[words["plot"], words["good"], 0.0]])
    # What scikit-learn calls x0, x1, ... has no names.
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(X.to_numpy(), Y)
    np.testing.assert_array_equal(started(scaled).weights, scaled[-1].coef_)


def test_a_model_of_ours_and_its_file_bring_names_noise_and_promise(tmp_path):
    model = DPLogisticRegression(random_state=0).fit(X, Y)
    prior = started(model, where=records("dcbaz"))
    np.testing.assert_array_equal(prior.weights[0, :4], model.coef_[0, ::-1])
    assert prior.weights[0, 4] == prior.standard_error[0, 4] == 0.0
    np.testing.assert_array_equal(prior.standard_error[0, :4], model.coef_standard_error_)
    assert "a model of dplasso without privacy" in prior.source
    model.save(tmp_path / "model.npz")
    assert started(str(tmp_path / "model.npz"), where=records("dcbaz")).digest == prior.digest
    private = DPLogisticRegression().fit(X, Y)
    assert "a model of dplasso at epsilon 1, delta 1e-06" in started(private).source


def test_weights_by_name_by_number_and_in_order():
    prior = started({"b": 2, "q": 5.0, "(intercept)": -1.0})
    np.testing.assert_array_equal(prior.weights, [[0.0, 2.0, 0.0, 0.0]])
    assert (prior.intercept, prior.standard_error) == ([-1.0], None)
    series = started(pd.Series({"b": 2.0, "q": 5.0, "(intercept)": -1.0}))
    assert series.digest == prior.digest
    by_number = started({3: 1.0, 0: 2.0}, where=records(n=4))
    np.testing.assert_array_equal(by_number.weights, [[2.0, 0.0, 0.0, 1.0]])
    for array in ([1, 2, 3, 4], np.arange(1.0, 5.0), [[1, 2, 3, 4]]):
        np.testing.assert_array_equal(started(array).weights, [[1.0, 2.0, 3.0, 4.0]])


def test_a_table_of_weights_in_a_file(tmp_path):
    path = tmp_path / "weights.csv"
    path.write_text("\ufeffweight,name\n2,b\n-1,(intercept)\n5,q\n")
    same = started({"b": 2.0, "q": 5.0, "(intercept)": -1.0})
    assert started(path).digest == started(str(path)).digest == same.digest
    path.write_text("name,class,weight\na,no,1\na,yes,3\nb,yes,1\n")
    np.testing.assert_array_equal(started(path).weights, [[2.0, 1.0, 0.0, 0.0]])
    for text, words in (
        ("a,1\n", "has no header with the columns name and weight"),
        ("name,weight\na,much\n", "line 2: 'much' is not a number"),
        ("name,weight\na\n", "line 2: None is not a number"),
        ("name,weight\na,1\na,2\n", "line 3: 'a' appears twice"),
        ("name,weight\n", "prior must have a weight for each column that it knows"),
        ("name,weight\na,nan\n", "a weight that is NaN or infinite"),
    ):
        path.write_text(text)
        refused(words, path)


def test_a_prior_that_was_matched_before_is_taken_as_it_is():
    prior = started({"b": 2.0})
    assert started(prior) is prior
    refused("weights of the shape (1, 4), and these data need (1, 5)", prior, where=records(n=5))


# --- classes and targets -------------------------------------------------------------------------


def test_two_classes_in_the_other_order_turn_the_sign():
    model = LogisticRegression().fit(X, Y)
    prior = started(model, ["yes", "no"])
    np.testing.assert_array_equal(prior.weights, -model.coef_)
    np.testing.assert_array_equal(prior.intercept, -model.intercept_)


def test_classes_are_matched_by_label():
    model = LogisticRegression().fit(X, THREE)
    prior = started(model, [2.0, 0.0, 1.0])
    np.testing.assert_array_equal(prior.weights, model.coef_[[2, 0, 1]])
    np.testing.assert_array_equal(prior.intercept, model.intercept_[[2, 0, 1]])
    by_class = started({"1": {"a": 1.0}, "0": {"b": 2.0}, "2": {}}, range(3))
    np.testing.assert_array_equal(by_class.weights[:, :2], [[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    in_order = started({"a": [1, 2, 3]}, range(3))
    np.testing.assert_array_equal(in_order.weights[:, 0], [1.0, 2.0, 3.0])
    # Of two classes the margin is the difference.
    assert started({"a": [1.0, 3.0]}).weights[0, 0] == 2.0


def test_other_classes_are_refused():
    model, three = LogisticRegression().fit(X, Y), LogisticRegression().fit(X, THREE)
    words = "prior is of the classes no, yes, and the data have the classes 0, 1; they must be"
    refused(words, model, [0, 1])
    refused("of the classes 0, 1, 2, and", three)
    refused(
        "prior has 1 weight for each column, and the data have the classes 0, 1, 2",
        [1, 2, 3, 4],
        range(3),
    )
    refused("prior has 3 weights for each column", {"a": [1, 2, 3]})
    refused("prior is a model of numbers, and the fit learns classes", Ridge().fit(X, THREE))
    refused("prior is a model of classes, and the fit learns numbers", model, bounds=(0.0, 1.0))


def test_a_regression_is_in_the_unit_of_the_target():
    target = 30.0 + 4.0 * X["a"]
    model = LinearRegression().fit(X, target)
    bounds = (10.0, 50.0)
    prior = started(model, bounds=bounds)
    # The losses learn (y - 30) / 20.
    np.testing.assert_allclose(prior.weights, [[0.2, 0.0, 0.0, 0.0]], atol=1e-9)
    np.testing.assert_allclose(prior.intercept, [0.0], atol=1e-9)
    # Where nothing is said of the intercept, in the middle of the interval.
    assert started([20.0, 0, 0, 0], bounds=bounds).intercept == [0.0]
    assert started({"a": 20.0, "(intercept)": 50.0}, bounds=bounds).intercept == [1.0]
    ours = DPLinearRegression(target_bounds=(10, 50), random_state=0).fit(X, target)
    again = started(ours, bounds=bounds)
    np.testing.assert_allclose(again.weights, ours.coef_ / 20.0)
    np.testing.assert_allclose(again.standard_error[0], ours.coef_standard_error_ / 20.0)
    np.testing.assert_allclose(again.intercept, (ours.intercept_ - 30.0) / 20.0)
    refused("a regression has one weight for each column", {"a": [1.0, 2.0]}, bounds=bounds)


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_no_numbers_are_refused(bad):
    refused("prior has a weight that is NaN or infinite", [1.0, bad, 0.0, 0.0])
    refused("prior has an intercept that is NaN", {"(intercept)": bad, "a": 1})


def test_what_cannot_be_a_prior_is_refused_in_one_sentence(tmp_path):
    refused("is a LogisticRegression that is not fitted or not linear", LogisticRegression())
    refused("not fitted or not linear", make_pipeline(StandardScaler(), LogisticRegression()))
    refused("prior must be a fitted linear model of scikit-learn or dplasso", "weights".split)
    refused("prior must be", object())
    refused("the shape (1, 0)", [])
    refused("the shape (1, 1, 1)", [[[1.0]]])
    refused("as many numbers as there are classes", {"a": 1.0, "b": [1.0, 2.0]})
    refused("as many numbers as there are classes", {"a": "much"})
    refused("prior knows none of the columns of the data: its own are 'q', those", {"q": 1.0})
    refused("the columns of the data have no names", {"q": 1.0}, where=records(n=4))
    refused("a weight for column 4, and the columns of", {4: 1.0}, where=records(n=4))
    twice = Schema((Categories("a", ("b=c",)), Categories("a=b", ("c",))))
    refused("two columns with the same name", {"a=b=c": 1.0}, where=records(schema=twice))
    refused("prior and public_data cannot be combined", {"a": 1.0}, public_data=(X, Y))
    with pytest.raises(FileNotFoundError, match=r"path of a file that is not there: .*none.npz"):
        started(str(tmp_path / "none.npz"))
    (tmp_path / "none.npz").write_bytes(b"PK")
    with pytest.raises(ModelFileError, match="not a dplasso model file"):
        started(tmp_path / "none.npz")


def test_a_model_that_started_from_a_prior_is_a_prior_with_it(tmp_path):
    first = DPLogisticRegression(prior={"a": 3.0}, random_state=0).fit(X, Y)
    first.save(tmp_path / "first.npz")
    second = started(tmp_path / "first.npz")
    np.testing.assert_array_equal(second.weights, first.coef_)
    np.testing.assert_array_equal(second.intercept, first.intercept_)
    assert load(tmp_path / "first.npz").prior.digest == first.model_.prior.digest
