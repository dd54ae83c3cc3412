"""``--method logistic`` from fit to evaluate: what is printed, written, charged and refused."""

import json

import numpy as np
import pytest

import dplasso
from cli.test_errors import check_refused

FAST = ("--method", "logistic", "--n-iter", "20")


def fitted(run, train, *arguments):
    result = run("fit", train, "--epsilon", "2", *FAST, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_model_from_fit_to_evaluate(run, train, held_out, tmp_path):
    out = tmp_path / "model.npz"
    report = fitted(run, train, "--test", held_out, "--model", out)
    model = dplasso.load(out)
    assert isinstance(model, dplasso.DPLogisticRegression)
    assert report["privacy"] == model.privacy_.to_dict()
    assert report["privacy"]["mechanism"] == "gaussian"
    assert report["n_nonzero"] == report["n_features"] == 30

    error = model.coef_standard_error_
    assert report["standard_error"] == error > 0
    weights = model.coef_[0]
    assert report["n_significant"] == (np.abs(weights) > 3 * error).sum() >= 2
    # The columns that tell the labels.
    assert {one["column"] for one in report["heaviest"][:2]} == {0, 1}
    for one in report["heaviest"]:
        assert one["weight"] == weights[one["column"]]
        assert one["z"] == one["weight"] / one["standard_error"]

    scores = json.loads(run("evaluate", out, held_out, "--json").stdout)
    assert report["test"] == {key: scores[key] for key in ("auc", "accuracy", "n_samples")}
    assert scores["auc"] > 0.9
    lines = run("predict", out, held_out, "--proba").stdout.split()
    truth = np.array([line.split()[0] == "+1" for line in held_out.read_text().splitlines()])
    positive = np.array(lines, dtype=float)
    # The inverse link of the clipped loss, in both.
    loss = -np.log(np.where(truth, positive, 1 - positive)).mean()
    assert scores["log_loss"] == pytest.approx(loss, rel=1e-6)


def test_the_text_names_weights_with_their_errors(run, train):
    result = run("fit", train, "--epsilon", "2", *FAST)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "30 non-zero weights after 20 gradients" in text
    assert "beyond 3 standard errors" in text
    assert "standard error ┃ z ┃" in text
    assert "--method" not in text


def test_without_privacy_there_are_no_errors(run, train):
    result = run("fit", train, "--epsilon", "inf", *FAST)
    assert "after 20 gradients without noise" in " ".join(result.stdout.split())
    assert "standard error" not in result.stdout
    report = json.loads(run("fit", train, "--epsilon", "inf", *FAST, "--json").stdout)
    assert report["n_significant"] is None
    assert report["heaviest"][0]["z"] is None


def test_the_lasso_names_the_other_method_unless_a_number_of_weights_was_asked_for(run, tmp_path):
    wide = tmp_path / "wide.svm"
    wide.write_text("".join(f"{i % 2} {1 + i}:1 {201 + i}:1\n" for i in range(200)))
    for arguments, named in [((), True), (("--n-iter", 8), False), (("--l1-radius", 3), False)]:
        text = run("fit", wide, "--epsilon", "1", *arguments).stdout
        assert ("--method logistic" in text) is named, arguments


def test_where_so_few_columns_are_all_taken_neither_method_is_named(run, train):
    assert "--method" not in run("fit", train, "--epsilon", "1").stdout


def test_options_reach_the_estimator(run, train, tmp_path):
    out = tmp_path / "model.npz"
    fitted(
        *(run, train, "--delta", "1e-5", "--max-weights", "4", "--row-norm", "2.5"),
        *("--residual-bound", "0.75", "--n-records", "800", "--rows-per-person", "2"),
        *("--no-intercept", "--neighbors", "replace-one", "--jobs", "1", "--model", out),
    )
    model = dplasso.load(out)
    expected = {
        "epsilon": 2.0,
        "delta": 1e-5,
        "max_weights": 4,
        "row_norm": 2.5,
        "n_iter": 20,
        "residual_bound": 0.75,
        "n_records": 800,
        "rows_per_person": 2,
        "n_jobs": 1,
        "fit_intercept": False,
        "neighbors": "replace-one",
    }
    assert {name: model.get_params()[name] for name in expected} == expected
    assert model.coef_.nnz == 4
    report = fitted(run, train, "--max-weights", "significant")
    assert report["n_nonzero"] == report["n_significant"]


def test_options_left_out_are_the_estimators_defaults(run, train, tmp_path):
    out = tmp_path / "model.npz"
    assert run("fit", train, "--epsilon", 1, "--method", "logistic", "--model", out).exit_code == 0
    assert dplasso.load(out).get_params() == dplasso.DPLogisticRegression().get_params()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--method", "ridge"), "--method must be lasso, logistic or linear, got 'ridge'"),
        (("--max-weights", "3"), "--max-weights does not go with --method lasso"),
        (("--row-norm", "unit"), "--row-norm does not go with --method lasso"),
        (("--n-records", "0"), "--n-records must be"),
        ((*FAST, "--l1-radius", "3"), "--l1-radius does not go with --method logistic"),
        ((*FAST, "--feature-bound", "1"), "--feature-bound does not go with --method logistic"),
        ((*FAST, "--mechanism", "paper"), "--mechanism does not go with --method logistic"),
        ((*FAST, "--drift-tol", "0"), "--drift-tol does not go with --method logistic"),
        ((*FAST, "--max-weights", "many"), "--max-weights must be"),
        ((*FAST, "--row-norm", "long"), "--row-norm must be 'unit' or a number > 0"),
        ((*FAST, "--residual-bound", "2"), "--residual-bound must be"),
        ((*FAST, "--rows-per-person", "0"), "--rows-per-person must be"),
    ],
)
def test_what_does_not_go_together_is_refused_before_reading(run, tmp_path, arguments, named):
    check_refused(run("fit", tmp_path / "no-file.svm", "--epsilon", "1", *arguments), named)


def test_an_interrupted_fit_goes_on(run, train, tmp_path, monkeypatch):
    """With a seed the model is that of an uninterrupted fit, to the bit."""
    from dplasso.gradient_descent.run import GradientRun

    paths = {name: tmp_path / f"{name}.npz" for name in ("whole", "resumed", "checkpoint")}
    seeded = ("fit", train, "--epsilon", "2", *FAST, "--seed", "5")
    assert run(*seeded, "--model", paths["whole"]).exit_code == 0
    kept = ("--checkpoint", paths["checkpoint"], "--checkpoint-seconds", "0")
    advance = GradientRun.advance

    def stop_after_10(self, first, last):
        if last > 10:
            raise KeyboardInterrupt
        advance(self, first, last)

    with monkeypatch.context() as patch:
        patch.setattr(GradientRun, "advance", stop_after_10)
        assert run(*seeded, *kept, "--model", paths["resumed"]).exit_code == 130
    result = run(*seeded, *kept, "--model", paths["resumed"], "--resume")
    assert result.exit_code == 0, result.output
    one, other = (dplasso.load(paths[name]) for name in ("whole", "resumed"))
    assert (one.coef_ == other.coef_).all()
    assert one.intercept_ == other.intercept_
    wrong = run(*seeded, *kept, "--resume", "--max-weights", "3")
    assert wrong.exit_code == 1


def test_a_ledger_pays_for_both_methods(run, train, tmp_path):
    ledger = tmp_path / "team.ledger"
    assert run("ledger", "init", ledger, "--epsilon", 3, "--delta", "1e-5").exit_code == 0
    report = fitted(run, train, "--ledger", ledger, "--model", tmp_path / "m.npz")
    assert 0 < report["ledger"]["epsilon_left"] < 3
    plan = ("ledger", "plan", ledger, "--method", "logistic", "--json")
    left = json.loads(run(*plan).stdout)
    assert (left["method"], left["n_iter"]) == ("logistic", 300)
    spend = ("ledger", "spend", ledger, "--method", "logistic", "--epsilon")
    check_refused(run(*spend, left["epsilon"] * 1.001), "cannot pay for this fit")
    assert run(*spend, left["epsilon"]).exit_code == 0
    assert json.loads(run(*plan).stdout)["epsilon"] < 0.1
    check_refused(
        run(*spend[:-2], "ridge", "--epsilon", 1), "--method must be lasso, logistic or linear"
    )


def test_a_store(run, train, tmp_path):
    assert run("convert", train, tmp_path / "train.store").exit_code == 0
    models = []
    for number, data in enumerate((train, tmp_path / "train.store")):
        out = tmp_path / f"{number}.npz"
        result = run("fit", data, "--epsilon", "inf", *FAST, "--model", out)
        assert result.exit_code == 0, result.output
        models.append(dplasso.load(out))
    assert models[1].coef_ == pytest.approx(models[0].coef_, rel=1e-6)
    assert fitted(run, tmp_path / "train.store")["privacy"]["is_private"]
