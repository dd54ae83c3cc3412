"""What holds records, or is the curator's, is its owner's alone, whatever the umask."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import new_ledger
from dplasso import DPLogisticRegression
from dplasso.checkpoint import fit_with_checkpoints
from estimators.kinds import stored


@pytest.fixture(autouse=True)
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(place):
    """Return the rights of everything at a place."""
    inside = [place, *(place.rglob("*") if place.is_dir() else ())]
    return {(one.is_dir(), stat.S_IMODE(one.stat().st_mode)) for one in inside}


def test_a_store(tmp_path):
    X = np.eye(6, dtype=np.float32)
    stored(X, np.arange(6) % 2, tmp_path / "a.store")
    assert modes(tmp_path / "a.store") == {(True, 0o700), (False, 0o600)}


@pytest.fixture
def fit(tmp_path):
    """Return a ledger, a checkpoint, and what makes fits that write to both."""
    ledger, kept = tmp_path / "l", tmp_path / "kept"
    new_ledger(ledger, 3.0, 1e-5)

    def run(**options):
        model = DPLogisticRegression(0.5, classes=[0, 1], ledger=ledger)
        return fit_with_checkpoints(model, np.eye(40), np.arange(40) % 2, kept, **options)

    return ledger, kept, run


def test_a_ledger_its_key_and_a_checkpoint_but_not_a_model(fit, tmp_path):
    ledger, kept, run = fit
    model = run()
    for place in (ledger, Path(f"{ledger}.key"), kept):
        assert modes(place) == {(False, 0o600)}
    model.save(tmp_path / "m.npz")
    assert modes(tmp_path / "m.npz") == {(False, 0o666)}
    os.umask(0o077)
    model.save(tmp_path / "other.npz")
    assert modes(tmp_path / "other.npz") == {(False, 0o600)}


def test_rights_that_were_given_to_a_file_stay(fit):
    ledger, kept, run = fit
    run()
    for place in (ledger, kept):
        place.chmod(0o640)
    run(overwrite=True)
    for place in (ledger, kept):
        assert modes(place) == {(False, 0o640)}
