"""What version 0.2.0 computed, every version computes; what it wrote, every version reads."""

import json
import shutil
from functools import cache

import numpy as np
import pytest
from tests.golden.cases import (
    CASES,
    N_COLUMNS,
    costs,
    fit,
    kept_of,
    make_data,
    numbers_of,
    signs,
    small,
)
from tests.golden.make import (
    CHARGED,
    COMPLETE,
    FILES,
    INTERRUPTED,
    MODELS,
    REPEATED,
    convert,
    data_of,
    ledger_report,
    model_report,
    open_golden_store,
    read_reports,
    read_statements,
    table,
)

from dplasso import load, open_store
from dplasso.checkpoint import read_checkpoint, resume_fit

# Of the LASSO with a radius the bits are kept; of other numbers all but their last places, in which
# processors differ.
TOLERANCES = {"steps": 0.0, "numbers": 1e-12, "history": 1e-11, "margins": 1e-12}
TOLERANCES |= {"probabilities": 1e-12}


@cache
def expected(name):
    return read_reports(FILES / name)


@cache
def made(group):
    return {
        f"{group}: {name}": fit(case, make_data(case.data, open_golden_store))
        for name, case in CASES[group].items()
    }


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


@pytest.mark.parametrize("group", CASES)
def test_fits_end_in_the_same_numbers(group):
    kept = expected("fits.npz")
    found = {
        name: differing(kept_of(model), kept[name], exact=group.startswith("LASSO"))
        for name, model in made(group).items()
    }
    assert {name: kinds for name, kinds in found.items() if kinds} == {}


def test_every_fit_that_is_kept_is_made():
    cases = [f"{group}: {name}" for group, cases in CASES.items() for name in cases]
    assert cases == list(expected("fits.npz")) == list(read_statements(FILES / "statements.json"))


def same_numbers(found, kept):
    return all(
        found.get(name) == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)
        for name, value in kept.items()
    )


@pytest.mark.parametrize("group", CASES)
def test_privacy_statements_have_the_same_numbers(group):
    kept = read_statements(FILES / "statements.json")
    assert [
        name
        for name, model in made(group).items()
        if not same_numbers(numbers_of(model.privacy_), kept[name])
    ] == []


def test_steps_cost_the_same():
    for found, kept in zip(costs(), json.loads((FILES / "costs.json").read_text()), strict=True):
        assert found[:4] == kept[:4]
        assert found[4:] == pytest.approx(kept[4:], rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_file_predicts_the_same(name):
    model, case = load(FILES / f"{name}.model"), MODELS[name]
    assert isinstance(model, case.estimator)
    kept = expected("models.npz")[name]
    assert differing(model_report(model, data_of(case)), kept, exact=False) == []
    said = read_statements(FILES / "models.json")[name]
    assert same_numbers(numbers_of(model.privacy_), said)
    given = {key: value for key, value in case.options.items() if key != "random_state"}
    loaded = {key: getattr(model, key) for key in given}
    assert {key: list(one) if key == "classes" else one for key, one in loaded.items()} == given


def test_a_model_file_knows_how_its_columns_were_made():
    margins = load(FILES / "table.model").decision_function(table())[:40]
    np.testing.assert_allclose(margins, expected("models.npz")["table"]["margins"], rtol=1e-12)


def test_a_store_holds_the_same_matrix():
    store, data = open_store(FILES / "rows.store", verify=True), small()
    X = store.X.tocsr()
    assert X.shape[1] == N_COLUMNS
    assert X.dtype == data.X.dtype
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(data.X, name))
    np.testing.assert_array_equal(store.y, signs(data.y))


def test_converting_writes_the_same_files(tmp_path):
    made, kept = convert(tmp_path), FILES / "rows.store"
    assert {path.name for path in made.iterdir()} == {path.name for path in kept.iterdir()}
    arrays = sorted(path.name for path in kept.glob("*.npy"))
    assert len(arrays) == 9
    assert [
        name for name in arrays if (made / name).read_bytes() != (kept / name).read_bytes()
    ] == []


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
    path, data = shutil.copy(FILES / f"{name}.checkpoint", folder), data_of(case)
    estimator = case.estimator(**case.options | changes)
    model = resume_fit(estimator, data.X, data.y, path)
    assert read_checkpoint(path).is_complete
    return model


@pytest.mark.parametrize("name", REPEATED)
def test_a_checkpoint_ends_in_the_same_model(name, tmp_path):
    case = COMPLETE if name == "complete" else INTERRUPTED[name][0]
    report = model_report(resumed(name, case, tmp_path), data_of(case))
    assert differing(report, expected("checkpoints.npz")[name], exact=name != "logistic") == []


@pytest.mark.parametrize("name", sorted(set(INTERRUPTED) - set(REPEATED)))
def test_a_checkpoint_of_a_fit_without_a_seed_goes_on(name, tmp_path):
    stored = read_checkpoint(FILES / f"{name}.checkpoint")
    assert 0 < len(stored.release) < stored.statement.steps
    model = resumed(name, INTERRUPTED[name][0], tmp_path)
    assert len(model.model_.release) == stored.statement.steps
    if name.startswith("lasso"):
        first = getattr(stored.release, "vertices", stored.release).transcript
        for kind in ("vertex", "sign"):
            drawn = getattr(first, kind)
            np.testing.assert_array_equal(getattr(model.transcript_, kind)[: drawn.size], drawn)


def test_a_checkpoint_that_was_paid_for_is_not_charged_again(tmp_path):
    before, ledger = kept_ledger(), shutil.copy(FILES / "team.ledger", tmp_path)
    resumed("charged", CHARGED, tmp_path, ledger=ledger)
    after = ledger_report(ledger)
    assert after["visits"]["rho"] == before["visits"]["rho"]
    states = [[entry["state"] for entry in told["visits"]["entries"]] for told in (before, after)]
    assert states == [
        ["finished", "finished", "failed", "reserved"],
        ["finished", "finished", "finished", "reserved"],
    ]
