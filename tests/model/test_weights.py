"""The tables of weights: where noise alone could have picked one, and corrections of a prior."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import DPLassoClassifier, DPLogisticRegression, ModelFileError, load
from dplasso.model import write_model
from fit.cases import releases
from model.files import fitted, header_of, release_again, rewrite, vertices


def of_vertices(path, vertex, n_features):
    """Return a model of these vertices, without a constant column."""
    write_model(fitted(), path)
    release_again(path, vertices(vertex, constant=0.0, n_features=n_features))
    rewrite(path, lambda header: header.update(n_features=n_features))
    return load(path)


def clear_from(n_steps, n_features, path):
    """Return the least number of steps, of so many, from which a weight is clear."""
    for count in range(1, n_steps + 1):
        # The other steps are shared out.
        others = 1 + np.arange(n_steps - count) % (n_features - 1)
        (row, *_) = of_vertices(path, [*[0] * count, *others], n_features).weights().rows()
        if row["clear"]:
            return count
    return n_steps + 1


def test_uniform_draws_are_rarely_called_clear(tmp_path):
    """Of 2,000 runs 5 % may be: more than 120 of them have a chance of 2 % at exactly 5 %."""
    rng = np.random.default_rng(0)
    runs = [np.bincount(rng.integers(0, 80, 60), minlength=80).max() for _ in range(2_000)]
    clear = clear_from(60, 40, tmp_path / "m.npz")
    assert (np.array(runs) >= clear).sum() <= 120
    # One less would be too few: the mark is not merely shy.
    assert (np.array(runs) >= clear - 1).sum() > 120


def test_a_model_without_weights_is_an_empty_table(tmp_path):
    # All vertices are of the constant column.
    path = tmp_path / "m.npz"
    write_model(fitted(), path)
    release_again(path, vertices([4, 4]))
    nothing = load(path).weights()
    assert nothing.to_pandas().empty
    assert (len(nothing), nothing.rows(), repr(nothing)) == (0, [], "(no column has a weight)")


RNG = np.random.default_rng(2)
X = sp.csr_array((RNG.random((300, 30)) < 0.3).astype(float))
Y = (X @ RNG.normal(size=30) > 0).astype(int)
DENSE = RNG.normal(size=(1, 30))


def test_a_file_holds_a_prior_of_several_classes_with_its_errors(tmp_path):
    labels = np.arange(300) % 3
    first = DPLogisticRegression(random_state=0).fit(X, labels)
    model = DPLogisticRegression(prior=first).fit(X, labels)
    model.save(tmp_path / "m.npz")
    ours, again = model.model_.prior, load(tmp_path / "m.npz").model_.prior
    assert (again.source, again.digest) == (ours.source, ours.digest)
    for name in ("weights", "intercept", "standard_error"):
        np.testing.assert_array_equal(getattr(again, name), getattr(ours, name))
    assert again.weights.shape == (3, 30)
    assert again.standard_error.any()


@pytest.mark.parametrize(
    ("entry", "members", "words"),
    [
        ({}, {"prior_weight": np.full(30, np.nan)}, "NaN or infinity"),
        ({"intercept": [1e999]}, {}, "NaN or infinity"),
        ({}, {"prior_error": np.full(30, np.inf)}, "NaN or infinity"),
        ({"intercept": [0.0, 0.0]}, {}, "do not fit together"),
        ({}, {"prior_error": np.zeros(29)}, "reshape"),
        # Another number, or a weight in another place, is another prior.
        ({}, {"prior_weight": np.ones(30)}, "damaged"),
        ({}, {"prior_place": np.ones(30, np.int64)}, "damaged"),
    ],
)
def test_a_file_whose_prior_was_exchanged_is_damaged(entry, members, words, tmp_path):
    path = tmp_path / "m.npz"
    DPLogisticRegression(random_state=0, prior=DENSE).fit(X, Y).save(path)
    rewrite(path, lambda header: header["prior"].update(entry), **members)
    with pytest.raises(ModelFileError, match=words):
        load(path)


@pytest.fixture(scope="module", params=["logistic", "lasso", "lasso, all columns", "short list"])
def model(request):
    kinds = {
        "logistic": DPLogisticRegression(),
        "lasso": DPLassoClassifier(5.0, max_weights=6),
        "lasso, all columns": DPLassoClassifier(5.0),
        "short list": DPLogisticRegression(max_weights=4),
    }
    prior = {j: weight for j, weight in enumerate(DENSE[0]) if j % 3}
    return kinds[request.param].set_params(prior=prior, random_state=0).fit(X, Y)


def test_a_saved_model_predicts_the_same_and_starts_where_it_did(model, tmp_path):
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.privacy_.prior == model.privacy_.prior
    assert again.model_.prior.digest == model.model_.prior.digest == again.prior.digest
    header = header_of(tmp_path / "m.npz")
    assert not {"prior", "public_data", "prior_standard_error"} & header["params"].keys()
    assert header["prior"]["source"] in header["privacy"]["prior"]
    # It fits again from there.
    again.set_params(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_the_table_lists_what_was_corrected_and_what_came_of_it(model):
    table, coefficients = model.weights(), np.asarray(model.coef_)
    released = model.model_.linear.coefficients
    corrections = released if isinstance(released, np.ndarray) else released.toarray()
    assert table.columns.tolist() == np.flatnonzero(corrections[0]).tolist()
    np.testing.assert_array_equal(table.correction, corrections[0, table.columns])
    np.testing.assert_array_equal(table.values, coefficients[0, table.columns])
    started = releases(model)["calibration-prior_slope"] * model.model_.prior.weights[0]
    np.testing.assert_allclose(table.values - table.correction, started[table.columns], atol=1e-9)
    assert all({"weight", "correction"} <= row.keys() for row in table.top(3).rows())
    assert "correction" in repr(table)
    page = model._repr_mimebundle_()["text/html"]
    assert f"{len(table):,} corrections to the public model" in page
    assert "starts from" in page
    assert "corrected by" in page
