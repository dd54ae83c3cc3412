"""A fingerprint of the rows tells nothing to whoever has not the ledger's key."""

import stat
from dataclasses import replace

import numpy as np
import pytest

from dplasso.ledger import create_ledger, data_fingerprint, read_budgets, reserve
from ledger.workers import raw_charge

LABELS = np.array([0, 1, 1, 0, 1], dtype=np.int8)


@pytest.fixture
def path(tmp_path):
    create_ledger(tmp_path / "team.ledger", 3.0, 1e-5)
    return tmp_path / "team.ledger"


def charged(path, labels=LABELS):
    reserve(path, None, replace(raw_charge(1), fingerprint=data_fingerprint(labels)))
    return read_budgets(path)[0].entries[-1].charge.fingerprint


def test_it_is_the_same_for_the_same_rows_under_one_ledger_alone(path, tmp_path):
    one = charged(path)
    assert charged(path) == one
    assert charged(path, 1 - LABELS) != one
    assert charged(path, LABELS[:-1]) != one
    (tmp_path / "other").mkdir()
    create_ledger(tmp_path / "other" / "team.ledger", 3.0, 1e-5)
    assert charged(tmp_path / "other" / "team.ledger") != one
    # What the file holds has nothing of the hash that anybody could compute.
    assert data_fingerprint(LABELS)[:8].encode() not in path.read_bytes()


def test_the_key_is_a_file_beside_the_ledger_for_its_owner_alone(path, tmp_path):
    reserve(path, None, raw_charge(1))
    assert [file.name for file in tmp_path.iterdir()] == ["team.ledger"]
    one = charged(path)
    key = tmp_path / "team.ledger.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    held = key.read_bytes()
    assert len(held) == 32
    assert held not in path.read_bytes()
    link = tmp_path / "linked" / "l"
    link.parent.mkdir()
    link.symlink_to(path)
    assert charged(link) == one
    assert key.read_bytes() == held
    assert [file.name for file in link.parent.iterdir()] == ["l"]
    # A lost key begins another: nothing is compared across the two.
    key.unlink()
    again = charged(path)
    assert again.split(":")[0] != one.split(":")[0]


def test_a_key_is_whole_or_there_is_no_fingerprint_and_the_fit_goes_on(path, tmp_path):
    key = tmp_path / "team.ledger.key"
    # A kill while it is made leaves no half of one.
    key.touch(mode=0o600)
    assert charged(path) == charged(path) is not None
    assert len(key.read_bytes()) == 32
    key.write_bytes(b"somebody's own")
    assert charged(path) is None
    assert key.read_bytes() == b"somebody's own"
    key.unlink()
    key.mkdir()
    assert charged(path) is None
