"""``fit``, by every method: what is printed, written and passed on to the estimator."""

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import dplasso
from cli.conftest import done, found, said

LASSO = ("--method", "lasso")
VERTICES = ("--method", "frank-wolfe", "--n-iter", "8")


def fitted(train, *arguments, epsilon=2):
    """Fit the training rows, and return what JSON says of it."""
    return found("fit", train, "--epsilon", epsilon, *arguments)


def test_json_has_exactly_the_documented_keys(train, held_out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "model.npz"
    report = fitted(train, "--test", held_out, "--model", out, epsilon=1)
    common = {
        *("n_samples", "n_features", "nnz", "n_nonzero", "seconds", "privacy", "model"),
        *("cautions", "not_for_release"),
    }
    assert set(report) == common | {"test", "standard_error", "n_significant", "heaviest"}
    assert set(report["seconds"]) == {"read", "train", "compile"}
    assert report["privacy"] == dplasso.load(out).privacy_.to_dict()
    assert set(report["test"]) == {"auc", "accuracy", "n_samples"}
    assert (report["n_samples"], report["n_features"]) == (800, 30)
    assert report["not_for_release"] == ["n_samples", "nnz", "seconds", "test", "n_features"]
    assert report["model"] == str(out)
    assert all(spent >= 0 for spent in report["seconds"].values())
    assert 0.99 < report["privacy"]["epsilon"] <= 1.0
    assert report["privacy"]["is_private"] is True
    assert report["privacy"]["classes"] == "taken from y, treated as public"
    out.unlink()
    # Nothing that is not asked for.
    vertices = fitted(train, *VERTICES)
    assert set(vertices) == common
    assert vertices["model"] is None
    assert 0 < vertices["n_nonzero"] <= 8
    assert list(tmp_path.iterdir()) == []


def test_a_model_from_fit_to_evaluate(train, held_out, tmp_path):
    out = tmp_path / "model.npz"
    report = fitted(train, "--test", held_out, "--model", out)
    model = dplasso.load(out)
    assert isinstance(model, dplasso.DPLogisticRegression)
    assert report["privacy"]["mechanism"] == "gaussian"
    assert report["n_nonzero"] == report["n_features"] == 30
    error, weights = model.coef_standard_error_, model.coef_[0]
    assert report["standard_error"] == error.max() > 0
    assert report["n_significant"] == (np.abs(weights) > 3 * error).sum() >= 2
    # The columns that tell the labels.
    assert {one["column"] for one in report["heaviest"][:2]} == {0, 1}
    for one in report["heaviest"]:
        assert one["weight"] == weights[one["column"]]
        assert one["z"] == one["weight"] / one["standard_error"]
    scores = found("evaluate", out, held_out)
    assert report["test"] == {key: scores[key] for key in ("auc", "accuracy", "n_samples")}
    assert scores["auc"] > 0.9


def test_weights_are_named_with_their_errors(train):
    fit = ("fit", train, "--epsilon")
    text = said(*fit, 1)
    for words in (
        *("30 non-zero weights after ", "beyond 3 standard errors", "standard error ┃ z ┃"),
        "This protects each row.",
    ):
        assert words in text
    assert "This protects the label of each row." in said(*fit, 1, "--neighbors", "label")
    plain = said(*fit, "inf")
    assert "gradients without noise" in plain
    assert "standard error" not in plain
    report = found(*fit, "inf")
    assert report["n_significant"] is None
    assert report["heaviest"][0]["z"] is None
    assert report["privacy"]["epsilon"] == "inf"
    assert report["privacy"]["is_private"] is False


NUMBERS = ("--target-bounds", "-1,1")


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ((), dplasso.DPLogisticRegression),
        (LASSO, dplasso.DPLassoClassifier),
        (VERTICES[:2], dplasso.DPFrankWolfeClassifier),
        (NUMBERS, dplasso.DPLinearRegression),
        ((*NUMBERS, *LASSO), dplasso.DPLasso),
    ],
)
def test_options_left_out_are_those_of_the_chosen_estimator(train, tmp_path, options, kind):
    out = tmp_path / "m.npz"
    fitted(train, *options, "--model", out, epsilon=1)
    bounds = {"target_bounds": (-1.0, 1.0)} if "target_bounds" in kind().get_params() else {}
    assert type(dplasso.load(out)) is kind
    assert dplasso.load(out).get_params() == kind(**bounds).get_params()


COMMON = {"epsilon": 2.0, "delta": 1e-5, "neighbors": "replace-one", "fit_intercept": False}
REACHED = {
    "frank-wolfe": {"n_iter": 7, "l1_radius": 3.0, "feature_bound": 2.0, "drift_tol": None}
    | {"solver": "standard", "selector": "noisy-max", "residual_bound": 0.75, "n_records": 800},
    "lasso": {"max_weights": 3, "feature_bound": 2.0},
    "logistic": {"max_weights": 4, "row_norm": 2.5, "rows_per_person": 2},
}


@pytest.mark.parametrize("method", REACHED)
def test_options_reach_the_estimator(train, tmp_path, method):
    out, expected = tmp_path / "model.npz", REACHED[method]
    out.write_bytes(b"older")
    options = [f"--{name.replace('_', '-')}={value}" for name, value in expected.items()]
    common = ("--delta", "1e-5", "--neighbors", "replace-one", "--no-intercept", "--jobs", "1")
    given = ("--method", method, *map(str.lower, options), *common, "--classes", "1,-1")
    report = fitted(train, *given, "--features", "64", "--model", out, "--force")
    assert list(tmp_path.iterdir()) == [out]
    assert (report["n_features"], report["privacy"]["classes"]) == (64, "declared")
    params, wanted = dplasso.load(out).get_params(), expected | COMMON | {"n_jobs": 1}
    assert {name: params[name] for name in wanted} == wanted
    assert dplasso.load(out).classes_.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("options", "begins", "words"),
    [
        (("--epsilon", 1, "--mechanism", "paper"), "caution", "(red): not differentially private"),
        (("--epsilon", 0.1, "--n-records", 200), "warning:", "the noise outweighs"),
    ],
)
def test_what_a_fit_is_not_good_for_is_said_in_one_line(train, options, begins, words):
    result = done("fit", train, *VERTICES, *options)
    (line,) = [line for line in result.stderr.splitlines() if line.startswith(begins)]
    assert words in line


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True]])
def test_labels_need_not_be_numbers(tmp_path, labels):
    rng = np.random.default_rng(0)
    y = np.array(labels)[rng.integers(0, 2, size=100)]
    save_npz(tmp_path / "x.npz", csr_array((rng.random((100, 6)) < 0.4).astype(np.float32)))
    np.save(tmp_path / "y.npy", y)
    out, data = tmp_path / "model.npz", (tmp_path / "x.npz", "--labels", tmp_path / "y.npy")
    declared = ",".join(str(label) for label in labels)
    fitted(*data, "--classes", declared, "--model", out)
    assert dplasso.load(out).classes_.tolist() == labels
    predicted = said("predict", out, *data)
    assert set(predicted.split()) <= {str(label) for label in labels}
    assert said("predict", out, tmp_path / "x.npz") == predicted
