import gzip
import json

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import dplasso

FAST = ("--n-iter", "8")
PRIVACY_KEYS = {
    *("is_private", "epsilon", "epsilon_requested", "delta", "neighbors", "mechanism"),
    *("accountant", "steps", "eps0", "sensitivity", "feature_bound", "sampling_delta"),
    *("randomness", "classes", "reasons", "residual_bound", "mu", "rows_per_person", "records"),
    *("epsilon_by_rows", "n_classes", "release", "rho", "target_bounds", "tries", "tries_law"),
    *("weight_bound", "counted"),
}


def test_json_has_exactly_the_documented_keys(run, train, held_out, tmp_path):
    out = tmp_path / "model.npz"
    result = run(
        *("fit", train, "--epsilon", "1", *FAST, "--test", held_out, "--model", out, "--json")
    )

    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    report = json.loads(result.stdout)
    documented = {
        *("n_samples", "n_features", "nnz", "n_nonzero", "seconds", "privacy", "model"),
        *("statement", "test", "not_for_release"),
    }
    assert set(report) == documented | {"standard_error", "n_significant", "heaviest"}
    vertices = ("--l1-radius", 10, "--test", held_out, "--json")
    result = run("fit", train, "--epsilon", "1", *FAST, *vertices)
    assert set(json.loads(result.stdout)) == documented
    assert set(report["seconds"]) == {"read", "prepare", "train", "compile"}
    assert set(report["privacy"]) == PRIVACY_KEYS
    assert set(report["test"]) == {"auc", "accuracy", "n_samples"}
    assert (report["n_samples"], report["n_features"]) == (800, 30)
    assert report["not_for_release"] == ["n_samples", "nnz", "seconds", "test"]
    assert report["model"] == str(out)
    assert 0 < report["n_nonzero"] <= 8
    assert all(spent >= 0 for spent in report["seconds"].values())
    assert 0.99 < report["privacy"]["epsilon"] <= 1.0
    assert report["privacy"]["is_private"] is True
    assert report["privacy"]["classes"] == "taken from y, treated as public"


def test_without_test_and_model_there_is_no_test_and_no_file(run, train, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = json.loads(run("fit", train, "--epsilon", "1", *FAST, "--json").stdout)

    assert "test" not in report
    assert report["model"] is None
    assert list(tmp_path.iterdir()) == []


def test_test_scores_are_those_of_the_written_model(run, train, held_out, tmp_path):
    out = tmp_path / "model.npz"
    fit = ("fit", train, "--epsilon", "20", *FAST, "--test", held_out, "--model", out, "--json")
    reported = json.loads(run(*fit).stdout)["test"]
    evaluated = json.loads(run("evaluate", out, held_out, "--json").stdout)

    assert reported == {key: evaluated[key] for key in ("auc", "accuracy", "n_samples")}


def test_the_text_says_what_a_person_needs(run, train, held_out, tmp_path):
    statement = tmp_path / "s.json"
    written = ("--statement", statement)
    result = run("fit", train, "--epsilon", "1", *FAST, "--test", held_out, *written)

    assert result.exit_code == 0
    assert f"{statement}, but no model (give --model" in result.stdout
    text = " ".join(result.stdout.split())
    assert "800 rows, 30 columns" in text
    assert "AUC" in text
    assert "Differentially private with epsilon = 1" in text
    assert "taken from the file and is treated as public" in text
    # Two lines of the statement, the rest on demand.
    assert "Settings tuned on the same records" not in text
    whole = run("fit", train, "--epsilon", "1", *FAST, "--features", "64", "--explain").stdout
    whole = " ".join(whole.split())
    assert "Settings tuned on the same records" in whole
    assert "--feature-bound (1; larger entries were clipped to it), and all other" in whole
    assert "taken from the file" not in whole


def test_model_and_statement_are_written(run, train, tmp_path):
    model, statement = tmp_path / "model.npz", tmp_path / "statement.json"
    result = run(
        *("fit", train, "--epsilon", "1", *FAST, "--classes", "-1,1"),
        *("--features", "64", "--model", model, "--statement", statement, "--json"),
    )

    assert result.exit_code == 0, result.output
    assert sorted(tmp_path.iterdir()) == [model, statement]
    report = json.loads(result.stdout)
    assert json.loads(statement.read_text()) == report["privacy"]
    assert (report["model"], report["statement"]) == (str(model), str(statement))
    assert report["n_features"] == 64
    loaded = dplasso.load(model)
    assert loaded.privacy_.classes == "declared"
    assert loaded.classes_.tolist() == [-1, 1]


def test_options_reach_the_estimator(run, train, tmp_path):
    out = tmp_path / "model.npz"
    result = run(
        *("fit", train, "--epsilon", "2", "--delta", "1e-5", "--n-iter", "7", "--l1-radius", "3"),
        *("--neighbors", "replace-one", "--feature-bound", "2", "--no-intercept"),
        *("--solver", "standard", "--selector", "noisy-max", "--drift-tol", "none"),
        *("--jobs", "1", "--model", out, "--classes", "1,-1"),
    )
    assert result.exit_code == 0, result.output
    params = dplasso.load(out).get_params()
    expected = {
        "epsilon": 2.0,
        "delta": 1e-5,
        "n_iter": 7,
        "l1_radius": 3.0,
        "feature_bound": 2.0,
        "neighbors": "replace-one",
        "fit_intercept": False,
        "solver": "standard",
        "selector": "noisy-max",
        "drift_tol": None,
    }
    assert {name: params[name] for name in expected} == expected
    assert dplasso.load(out).classes_.tolist() == [1, -1]


def test_options_left_out_are_the_estimators_defaults(run, train, tmp_path):
    out = tmp_path / "model.npz"
    assert run("fit", train, "--epsilon", "1", "--model", out).exit_code == 0
    params, defaults = dplasso.load(out).get_params(), dplasso.DPLassoClassifier().get_params()
    for name in ("delta", "l1_radius", "n_iter", "feature_bound", "neighbors", "mechanism"):
        assert params[name] == defaults[name], name
    for name in ("solver", "selector", "drift_tol", "fit_intercept"):
        assert params[name] == defaults[name], name


def test_binarize_trains_on_ones(run, train, tmp_path):
    """The same model as from a file that holds ones, and not the one of the raw values."""
    ones = tmp_path / "ones.svm"
    lines = []
    for line in train.read_text().splitlines():
        label, *entries = line.split()
        lines.append(" ".join([label, *(entry.split(":")[0] + ":1" for entry in entries)]))
    ones.write_text("\n".join(lines) + "\n")
    settings = ("--epsilon", "inf", "--feature-bound", "3", *FAST)

    transcripts = []
    for number, arguments in enumerate([(train, "--binarize"), (ones,), (train,)]):
        out = tmp_path / f"{number}.npz"
        assert run("fit", *arguments, *settings, "--model", out).exit_code == 0
        transcripts.append(dplasso.load(out).transcript_)
    assert transcripts[0] == transcripts[1]
    assert transcripts[0] != transcripts[2]


def test_a_seed_repeats_and_is_marked(run, train, tmp_path):
    models = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for out in models:
        result = run("fit", train, "--epsilon", "1", *FAST, "--seed", "7", "--model", out, "--json")
        privacy = json.loads(result.stdout)["privacy"]
        assert privacy["is_private"] is False
        assert privacy["randomness"] == "seeded"
    assert dplasso.load(models[0]).transcript_ == dplasso.load(models[1]).transcript_


def test_without_privacy_json_is_strict(run, train):
    result = run("fit", train, "--epsilon", "inf", *FAST, "--json")

    def refuse(name):
        raise AssertionError(name)

    report = json.loads(result.stdout, parse_constant=refuse)
    assert report["privacy"]["epsilon"] == "inf"
    assert report["privacy"]["is_private"] is False


def test_papers_mechanism_warns_in_one_line(run, train):
    result = run("fit", train, "--epsilon", "1", *FAST, "--mechanism", "paper", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["privacy"]["is_private"] is False
    (warning,) = [line for line in result.stderr.splitlines() if line.startswith("warning:")]
    assert "not differentially private" in warning


def test_compressed_text_and_npz_give_the_same_model(run, train, tmp_path):
    packed = tmp_path / "train.svm.gz"
    packed.write_bytes(gzip.compress(train.read_bytes()))
    rows = [line.split() for line in train.read_text().splitlines()]
    matrix = np.zeros((len(rows), 30))
    for row, (_, *entries) in enumerate(rows):
        for entry in entries:
            column, value = entry.split(":")
            matrix[row, int(column) - 1] = np.float32(value)
    save_npz(tmp_path / "train.npz", csr_array(matrix))
    np.save(tmp_path / "labels.npy", np.array([int(row[0]) for row in rows]))

    transcripts = []
    for number, arguments in enumerate(
        [(train,), (packed,), (tmp_path / "train.npz", "--labels", tmp_path / "labels.npy")]
    ):
        out = tmp_path / f"model{number}.npz"
        result = run("fit", *arguments, "--epsilon", "inf", *FAST, "--model", out)
        assert result.exit_code == 0, result.output
        transcripts.append(dplasso.load(out).transcript_)
    assert transcripts[0] == transcripts[1] == transcripts[2]


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True]])
def test_labels_need_not_be_numbers(run, tmp_path, labels):
    rng = np.random.default_rng(0)
    y = np.array(labels)[rng.integers(0, 2, size=100)]
    matrix = (rng.random((100, 6)) < 0.4).astype(np.float32)
    save_npz(tmp_path / "x.npz", csr_array(matrix))
    np.save(tmp_path / "y.npy", y)
    out = tmp_path / "model.npz"
    declared = ",".join(str(label) for label in labels)
    result = run(
        *("fit", tmp_path / "x.npz", "--labels", tmp_path / "y.npy", "--classes", declared),
        *("--epsilon", "5", *FAST, "--model", out),
    )
    assert result.exit_code == 0, result.output
    assert dplasso.load(out).classes_.tolist() == labels
    lines = run("predict", out, tmp_path / "x.npz", "--labels", tmp_path / "y.npy").stdout
    assert set(lines.split()) <= {str(label) for label in labels}


def test_force_overwrites(run, train, tmp_path):
    out = tmp_path / "model.npz"
    out.write_bytes(b"older")
    assert run("fit", train, "--epsilon", "1", *FAST, "--model", out, "--force").exit_code == 0
    assert dplasso.load(out).n_features_in_ == 30


def test_a_failing_model_takes_the_statement_with_it(run, train, tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(dplasso.model, "write_model", fail)
    outputs = ("--model", tmp_path / "m.npz", "--statement", tmp_path / "s.json")
    result = run("fit", train, "--epsilon", "1", *FAST, *outputs)
    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_a_line_break_in_a_name_does_not_break_the_message(run, train, tmp_path):
    paid = ("--ledger", tmp_path / "a\nb", "--model", tmp_path / "m.npz")
    result = run("fit", train, "--epsilon", 1, *paid)
    assert result.exit_code != 0
    assert len(result.stderr.splitlines()) == 1
    assert "a b" in result.stderr
