"""What version 0.2.0 computed, every version computes; what it wrote, every version reads.

That version wrote `files`, and no later one can: where a number is meant to change its case goes
from the tables in `cases.py`, and the changelog says so.
"""

import json
import shutil
import sys
from dataclasses import asdict
from functools import cache
from itertools import product

import numpy as np
import pytest

from dplasso import load, open_store, privacy_cost
from dplasso.checkpoint import read_checkpoint, resume_fit
from dplasso.cli import main as command_line
from dplasso.errors import CheckpointError
from dplasso.ledger import epsilon_total, largest_epsilon, read_budgets
from golden.cases import (
    CASES,
    CHARGED,
    ENDED,
    FILES,
    INTERRUPTED,
    MODELS,
    N_COLUMNS,
    REPEATED,
    as_then,
    fit,
    kept_of,
    make_data,
    report_of,
    signs,
    small,
    table,
)

# Of the LASSO with a radius the bits are kept; of other numbers all but their last places, in which
# processors differ.
TOLERANCES = {"steps": 0.0, "numbers": 1e-12, "history": 1e-11, "margins": 1e-12}
TOLERANCES |= {"probabilities": 1e-12}
RELATIONS = ("add-remove", "replace-one")


@cache
def reports(name):
    """Read what fits led to: named arrays, one after the other."""
    found = {}
    with np.load(FILES / name, allow_pickle=False) as file:
        parts = np.split(file["values"], np.cumsum(file["sizes"])[:-1])
        for whole, array in zip(file["names"].tolist(), parts, strict=True):
            fitted, kind = whole.rsplit(": ", 1)
            found.setdefault(fitted, {})[kind] = array
    return found


@cache
def statements(name):
    """Read the numbers of statements: the first whole, of the others what differs from it."""
    said = json.loads((FILES / name).read_text())
    first = said.pop("of the first")
    return {fitted: first | numbers for fitted, numbers in said.items()}


def differing(report, kept, *, exact):
    """Return the kinds of numbers that are not what they were."""
    assert set(report) == set(kept)
    return [
        kind
        for kind, tolerance in TOLERANCES.items()
        if kind in kept
        and not np.allclose(
            report[kind],
            kept[kind],
            rtol=0.0 if exact and kind == "numbers" else tolerance,
            atol=0.0,
        )
    ]


def same_statement(statement, kept):
    """Compare the numbers of a statement: its wordings may change, and the accountant's version."""
    found = statement.to_dict()
    for rows, epsilon in found["epsilon_by_rows"].items():
        found[f"epsilon of {rows} rows"] = epsilon
    return all(
        found.get(name) == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)
        for name, value in kept.items()
    )


@pytest.mark.parametrize("group", CASES)
def test_fits_end_in_the_same_numbers(group):
    found = {}
    for name, case in CASES[group].items():
        with as_then():
            model, whole = fit(case), f"{group}: {name}"
        found[name] = differing(
            kept_of(model), reports("fits.npz")[whole], exact=group.startswith("LASSO")
        )
        if not same_statement(model.privacy_, statements("statements.json")[whole]):
            found[name].append("statement")
    assert {name: kinds for name, kinds in found.items() if kinds} == {}


def test_steps_cost_the_same():
    kept = {tuple(cost[:4]): cost[4:] for cost in json.loads((FILES / "costs.json").read_text())}
    for settings in product((0.1, 1.0, 8.0, 200.0), (1e-6, 1e-8), (100, 4000), RELATIONS):
        alone = {"n_records": 1, "fit_intercept": False}
        told = privacy_cost(*settings, feature_bound=0.5, **alone)
        found = [told.eps0, told.epsilon, told.sampling_delta]
        assert found == pytest.approx(kept[settings], rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_file_predicts_the_same(name):
    model, case = load(FILES / f"{name}.model"), MODELS[name]
    assert isinstance(model, case.estimator)
    kept = reports("models.npz")[name]
    # Of a short list 0.2.0 made unit rows by all columns, not by those that it was trained on.
    expected = ["margins", "probabilities"] if name == "logistic-classes" else []
    assert differing(report_of(model, make_data(case.data)), kept, exact=False) == expected
    assert same_statement(model.privacy_, statements("models.json")[name])
    given = {key: value for key, value in case.options.items() if key != "random_state"}
    loaded = {key: getattr(model, key) for key in given}
    assert {key: list(one) if key == "classes" else one for key, one in loaded.items()} == given


def test_a_bound_on_weights_that_a_file_leaves_out_is_the_default():
    assert "weight_bound" not in MODELS["logistic"].options
    assert load(FILES / "logistic.model").weight_bound == 1.0


def test_a_model_file_knows_how_its_columns_were_made():
    margins = load(FILES / "table.model").decision_function(table())[:40]
    np.testing.assert_allclose(margins, reports("models.npz")["table"]["margins"], rtol=1e-12)


def test_a_store_holds_the_same_matrix():
    store, data = open_store(FILES / "rows.store", verify=True), small()
    X = store.X.tocsr()
    assert X.shape[1] == N_COLUMNS
    assert X.dtype == data.X.dtype
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(data.X, name))
    np.testing.assert_array_equal(store.y, signs(data.y))


def test_converting_writes_the_same_files(tmp_path, monkeypatch):
    data, lines = small(), []
    for i, label in enumerate(signs(data.y)):
        row = data.X[[i]]
        pairs = zip(row.indices + 1, row.data, strict=True)
        lines.append(" ".join([str(label), *(f"{j}:{float(value)}" for j, value in pairs)]))
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    command = f"dplasso convert rows.svm rows.store --features {N_COLUMNS}"
    monkeypatch.setattr(sys, "argv", command.split())
    with pytest.raises(SystemExit) as ended:
        command_line()
    assert not ended.value.code
    made, kept = tmp_path / "rows.store", FILES / "rows.store"
    assert {path.name for path in made.iterdir()} == {path.name for path in kept.iterdir()}
    arrays = sorted(path.name for path in kept.glob("*.npy"))
    assert len(arrays) == 9
    for name in arrays:
        assert (made / name).read_bytes() == (kept / name).read_bytes(), name


def ledger_report(path):
    """Return what a ledger tells of its budgets, without fingerprints."""
    report = {}
    for budget in read_budgets(path):
        total = epsilon_total(budget.rho, budget.draw_delta, budget.delta)
        left = largest_epsilon(budget, delta=1e-7, n_iter=100)
        sums = {"rho": budget.rho, "draw_delta": budget.draw_delta, "total": total, "left": left}
        told = asdict(budget) | sums
        for entry in told["entries"]:
            entry["charge"].pop("fingerprint")
            entry.pop("process")
        report[str(budget.name)] = told
    return json.loads(json.dumps(report))


def known_then(found, kept):
    """Return what version 0.2.0 told too, of what is told now."""
    if isinstance(kept, dict):
        return {name: known_then(found[name], value) for name, value in kept.items()}
    if isinstance(kept, list):
        return [known_then(*pair) for pair in zip(found, kept, strict=True)]
    return found


def kept_ledger():
    return json.loads((FILES / "ledger.json").read_text())


def test_a_ledger_tells_the_same(tmp_path):
    path, kept = shutil.copy(FILES / "team.ledger", tmp_path), kept_ledger()
    found = known_then(ledger_report(path), kept)
    for name, budget in kept.items():
        # The end of a search, good to ten digits.
        assert found[name].pop("left") == pytest.approx(budget.pop("left"), rel=1e-9)
    assert found == kept


def resumed(name, case, folder, **changes):
    path, data = shutil.copy(FILES / f"{name}.checkpoint", folder), make_data(case.data)
    model = resume_fit(case.estimator(**case.options | changes), data.X, data.y, path)
    assert read_checkpoint(path).is_complete
    return model


@pytest.mark.parametrize("name", REPEATED)
def test_a_checkpoint_ends_in_the_same_model(name, tmp_path):
    case = REPEATED[name]
    with as_then():
        report = report_of(resumed(name, case, tmp_path), make_data(case.data))
    assert differing(report, reports("checkpoints.npz")[name], exact=True) == []


@pytest.mark.parametrize("name", ENDED)
def test_a_checkpoint_of_another_beginning_is_refused(name, tmp_path):
    """It is read, and what it says is not gone on with."""
    assert len(read_checkpoint(FILES / f"{name}.checkpoint").release) > 0
    with pytest.raises(CheckpointError, match="under another privacy statement, by another ver"):
        resumed(name, ENDED[name], tmp_path)


@pytest.mark.parametrize("name", INTERRUPTED)
def test_a_checkpoint_of_a_fit_without_a_seed_goes_on(name, tmp_path):
    stored = read_checkpoint(FILES / f"{name}.checkpoint")
    assert 0 < len(stored.release) < stored.statement.steps
    with as_then():
        model = resumed(name, INTERRUPTED[name], tmp_path)
    assert len(model.model_.release) == stored.statement.steps
    if name.startswith("lasso"):
        first = getattr(stored.release, "vertices", stored.release).transcript
        for kind in ("vertex", "sign"):
            drawn = getattr(first, kind)
            np.testing.assert_array_equal(getattr(model.transcript_, kind)[: drawn.size], drawn)


def test_a_checkpoint_that_was_paid_for_is_not_charged_again(tmp_path):
    before, ledger = kept_ledger(), shutil.copy(FILES / "team.ledger", tmp_path)
    with as_then():
        resumed("charged", CHARGED, tmp_path, ledger=ledger)
    after = ledger_report(ledger)
    assert after["visits"]["rho"] == before["visits"]["rho"]
    states = [[entry["state"] for entry in told["visits"]["entries"]] for told in (before, after)]
    assert states == [
        ["finished", "finished", "failed", "reserved"],
        ["finished", "finished", "finished", "reserved"],
    ]
