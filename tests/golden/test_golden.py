"""What version 0.1.0 computed, every version computes; what it wrote, every version reads."""

import json
import shutil
from functools import cache

import numpy as np
import pytest
from tests.golden.cases import groups, kept_of, numbers_of, small, statements
from tests.golden.make import (
    CHARGED,
    CHECKPOINTED,
    FILED,
    FILES,
    convert,
    ledger_report,
    model_report,
    named_rows,
)

from dplasso import DPLassoClassifier, load, open_store
from dplasso.checkpoint import read_checkpoint, resume_fit

GROUPS = groups(lambda: open_store(FILES / "rows.store"))


@cache
def expected_fits():
    with np.load(FILES / "fits.npz", allow_pickle=False) as file:
        return dict(file)


def expected_json(name):
    return json.loads((FILES / name).read_text())


def same_bits(one, other):
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


def same_history(one, other):
    # Sums of logarithms, which differ in the last place between processors, in parts by blocks of
    # rows.
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-11, atol=0)


KINDS = {"steps": same_bits, "weights": same_bits, "history": same_history}


def same_report(report, name):
    with np.load(FILES / name, allow_pickle=False) as file:
        kept = dict(file)
    assert set(report) == set(kept)
    # numpy's exponential differs in the last place between processors; the margins do not.
    probabilities = kept.pop("probabilities")
    np.testing.assert_array_max_ulp(report["probabilities"], probabilities, maxulp=4)
    assert [kind for kind in kept if not same_bits(report[kind], kept[kind])] == []


@pytest.mark.parametrize("group", GROUPS)
def test_fits_end_in_the_same_bits(group):
    expected = expected_fits()
    places = dict(zip(expected["names"].tolist(), expected["places"], strict=True))
    made = {f"{group}: {case}": fitted for case, fitted in GROUPS[group]().items()}
    assert list(made) == [name for name in places if name.startswith(f"{group}: ")]
    different = {
        kind: [
            name
            for name, fitted in made.items()
            if not same(
                getattr(fitted, kind),
                expected[f"{kind} {getattr(fitted, kind).size}"][places[name][column]],
            )
        ]
        for column, (kind, same) in enumerate(KINDS.items())
    }
    assert different == {"steps": [], "weights": [], "history": []}


def test_every_fit_that_is_kept_is_made():
    kept = {name.split(":")[0] for name in expected_fits()["names"].tolist()}
    assert kept == set(GROUPS)


def test_privacy_statements_have_the_same_numbers():
    assert statements() == expected_json("statements.json")


@pytest.mark.parametrize("name", FILED)
def test_a_model_file_predicts_the_same(name):
    model = load(FILES / f"{name}.model")
    same_report(model_report(model, named_rows().X), f"{name}.npz")
    assert numbers_of(model.privacy_) == expected_json("models.json")[name]
    given = {key: getattr(model, key) for key in FILED[name]}
    assert given == FILED[name]


def test_a_store_holds_the_same_matrix():
    store, data = open_store(FILES / "rows.store", verify=True), small()
    X = store.X.tocsr()
    for name in ("data", "indices"):
        assert same_bits(getattr(X, name), getattr(data.X, name))
    np.testing.assert_array_equal(X.indptr, data.X.indptr)
    np.testing.assert_array_equal(store.y, data.y)


def test_converting_writes_the_same_files(tmp_path):
    made, kept = convert(tmp_path), FILES / "rows.store"
    assert {path.name for path in made.iterdir()} == {path.name for path in kept.iterdir()}
    arrays = sorted(path.name for path in kept.glob("*.npy"))
    assert len(arrays) == 9
    assert [
        name for name in arrays if (made / name).read_bytes() != (kept / name).read_bytes()
    ] == []


def test_a_ledger_tells_the_same(tmp_path):
    path = shutil.copy(FILES / "team.ledger", tmp_path)
    expected = expected_json("ledger.json")
    found = known_then(ledger_report(path), expected)
    for name, budget in expected.items():
        # The end of a search, good to ten digits.
        assert found[name].pop("left") == pytest.approx(budget.pop("left"), rel=1e-9)
    assert found == expected


def known_then(found, expected):
    """Return what version 0.1.0 told too, of what is told now."""
    if isinstance(expected, dict):
        return {name: known_then(found[name], value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [known_then(*pair) for pair in zip(found, expected, strict=True)]
    return found


@pytest.mark.parametrize("name", ["complete", "interrupted"])
def test_a_checkpoint_ends_in_the_same_model(name, tmp_path):
    path, data = shutil.copy(FILES / f"{name}.checkpoint", tmp_path), named_rows()
    steps = len(read_checkpoint(path).transcript)
    assert steps == 60 if name == "complete" else 10 < steps < 60
    model = resume_fit(DPLassoClassifier(**CHECKPOINTED), data.X, data.y, path)
    same_report(model_report(model, data.X), "checkpointed.npz")
    assert read_checkpoint(path).transcript == model.transcript_


def test_a_checkpoint_that_was_paid_for_is_not_charged_again(tmp_path):
    path = shutil.copy(FILES / "charged.checkpoint", tmp_path)
    ledger, data = shutil.copy(FILES / "team.ledger", tmp_path), named_rows()
    drawn, before = read_checkpoint(path), expected_json("ledger.json")
    estimator = DPLassoClassifier(**CHARGED, ledger=ledger)
    model = resume_fit(estimator, data.X, data.y, path)
    n_drawn = len(drawn.transcript)
    assert 10 < n_drawn < 60
    steps = kept_of(model).steps[:n_drawn]
    np.testing.assert_array_equal(steps, (drawn.transcript.vertex + 1) * drawn.transcript.sign)
    after = ledger_report(ledger)
    assert after["visits"]["rho"] == before["visits"]["rho"]
    states = [[entry["state"] for entry in told["visits"]["entries"]] for told in (before, after)]
    assert states == [["finished", "failed", "reserved"], ["finished", "finished", "reserved"]]
