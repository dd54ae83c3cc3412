"""What holds records, or is the curator's, is its owner's alone, whatever the umask."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest
from evidence.matrices import matrix_source

import dplasso
from cli.conftest import done, train  # noqa: F401
from dplasso.data.store import write_store
from dplasso.ledger import create_ledger


@pytest.fixture(autouse=True)
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(place):
    """Return the rights of everything at a place."""
    inside = [place, *(place.rglob("*") if place.is_dir() else ())]
    return {(one.is_dir(), stat.S_IMODE(one.stat().st_mode)) for one in inside}


def test_stores_and_folders_of_them(train, tmp_path):  # noqa: F811
    X = np.eye(6, dtype=np.float32)
    write_store(matrix_source(X, np.arange(6) % 2), tmp_path / "a.store", memory=2**28)
    done("convert", train, tmp_path / "stores", "--cluster", "threads", "--features", 30)
    for place in (tmp_path / "a.store", tmp_path / "stores"):
        assert modes(place) == {(True, 0o700), (False, 0o600)}


def test_a_ledger_its_key_and_a_checkpoint_but_not_a_model(train, tmp_path):  # noqa: F811
    ledger, kept, model = (tmp_path / name for name in ("l", "kept", "m.npz"))
    create_ledger(ledger, 3.0, 1e-5)
    fit = ("fit", train, "--epsilon", 1, "--method", "frank-wolfe", "--n-iter", 3)
    done(*fit, "--model", model, "--ledger", ledger, "--checkpoint", kept)
    for place in (ledger, Path(f"{ledger}.key"), kept):
        assert modes(place) == {(False, 0o600)}
    assert modes(model) == {(False, 0o666)}
    os.umask(0o077)
    dplasso.load(model).save(tmp_path / "other.npz")
    assert modes(tmp_path / "other.npz") == {(False, 0o600)}


def test_rights_that_were_given_to_a_file_stay(train, tmp_path):  # noqa: F811
    ledger, kept = tmp_path / "l", tmp_path / "kept"
    create_ledger(ledger, 3.0, 1e-5)
    fit = ("fit", train, "--epsilon", 0.5, "--method", "frank-wolfe", "--n-iter", 3)
    fit += ("--ledger", ledger, "--checkpoint", kept)
    done(*fit, "--model", tmp_path / "m.npz")
    for place in (ledger, kept):
        place.chmod(0o640)
    done(*fit, "--model", tmp_path / "n.npz", "--force")
    for place in (ledger, kept):
        assert modes(place) == {(False, 0o640)}
