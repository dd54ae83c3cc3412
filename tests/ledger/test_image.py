"""The ledger's file under crashes, and its fingerprints, which tell nothing without the key."""

import os
import random
import stat
from dataclasses import replace
from io import FileIO

import numpy as np
import pytest

from dplasso import LedgerError
from dplasso.ledger import create_ledger, data_fingerprint, database, finish, reserve
from ledger.workers import only, raw_charge

SECTOR = 512
CHARGE = raw_charge(10**20)


@pytest.fixture
def path(tmp_path):
    create_ledger(tmp_path / "l", 100.0, 1e-5)
    return tmp_path / "l"


def recorded(monkeypatch, work):
    """Return what was done to the file: ("write", place, bytes), ("truncate", size), ("fsync",)."""
    done = []

    class Recorder(FileIO):
        def write(self, data):
            done.append(("write", self.tell(), bytes(data)))
            return super().write(data)

        def truncate(self, size=None):
            done.append(("truncate", size))
            return super().truncate(size)

    with monkeypatch.context() as patch:
        patch.setattr(database, "FileIO", Recorder)
        patch.setattr(os, "fsync", lambda _: done.append(("fsync",)))
        work()
    return done


def apply(content, step, keeps=lambda: True):
    """Do a step to the file's bytes; of a write, the sectors that `keeps` says."""
    if step[0] == "truncate":
        if keeps():
            del content[step[1] :]
    elif step[0] == "write":
        _, place, data = step
        content.extend(bytes(max(0, place + len(data) - len(content))))
        for first in range(0, len(data), SECTOR):
            if keeps():
                part = data[first : first + SECTOR]
                content[place + first : place + first + len(part)] = part


def crashes(before, steps, rng):
    """Yield what a file may hold after a crash at any moment.

    A killed process leaves a prefix of its steps, the last one torn. A power failure keeps what was
    synchronised, and any sectors of what came after.
    """
    synced, since = bytearray(before), []
    for step in steps:
        if step[0] == "fsync":
            for earlier in since:
                apply(synced, earlier)
            since = []
            continue
        since.append(step)
        for share in (0.0, 0.1, 0.5, 0.9, 1.0):
            content = bytearray(synced)
            for earlier in since:
                apply(content, earlier, lambda share=share: rng.random() < share)
            yield bytes(content)
        for cut in range(0, len(step[-1]) + 1, 997) if step[0] == "write" else (0,):
            content = bytearray(synced)
            for earlier in since[:-1]:
                apply(content, earlier)
            apply(content, (*step[:2], step[2][:cut]) if step[0] == "write" else step)
            yield bytes(content)


def readable(path):
    """Return the only budget of a ledger that must not have been lost."""
    try:
        return only(path)
    except LedgerError as error:
        pytest.fail(f"the ledger is lost: {error}")


def test_a_crash_at_any_moment_leaves_the_old_or_the_new(path, monkeypatch, tmp_path):
    for _ in range(3):
        reserve(path, None, CHARGE)
    before = path.read_bytes()
    budgets = [only(path)]

    def work():
        for _ in range(2):  # a commit over what the one before has left
            finish(reserve(path, None, CHARGE))
            budgets.append(only(path))

    steps = recorded(monkeypatch, work)
    whole = path.read_bytes()
    # The states between reserve and finish are those of a charge without an end.
    numbers = {len(budget.entries) for budget in budgets}
    crashed = tmp_path / "crashed"
    seen, recovered = set(), 0
    for content in crashes(before, steps, random.Random(0)):
        crashed.write_bytes(content)
        entries = readable(crashed).entries
        assert len(entries) in numbers
        assert all(entry.charge == CHARGE for entry in entries)
        seen.add((len(entries), entries[-1].state))
        assert crashed.read_bytes() == content  # reading repairs nothing
        if recovered % 7 == 0:
            reserve(crashed, None, CHARGE)
            assert len(only(crashed).entries) == len(entries) + 1
        recovered += 1
    ends = ("reserved", "finished")
    assert seen == {(3, "reserved"), *((count, end) for count in (4, 5) for end in ends)}
    assert recovered > 100
    assert len(whole) == path.stat().st_size


def test_a_full_disk_leaves_the_ledger_as_it_was(path, monkeypatch):
    before = path.read_bytes()

    class Full(FileIO):
        def write(self, data):
            if self.tell() > 10_000:
                raise OSError(28, "No space left on device")
            return super().write(data[:5000])

    monkeypatch.setattr(database, "FileIO", Full)
    with pytest.raises(LedgerError, match="l cannot be written: the disk is full"):
        reserve(path, None, CHARGE)
    assert path.read_bytes() == before
    monkeypatch.undo()
    assert reserve(path, None, CHARGE).number == 1


def test_a_copy_that_does_not_fit_its_digest_does_not_count(path, monkeypatch):
    steps = recorded(monkeypatch, lambda: reserve(path, None, CHARGE))
    content = bytearray(path.read_bytes())
    copy = steps[1][2]
    path.write_bytes(content + copy)
    assert len(only(path).entries) == 1
    for place in (0, len(copy) // 2, len(copy) - 60, len(copy) - 20, len(copy) - 1):
        torn = bytearray(copy)
        torn[place] ^= 1
        path.write_bytes(content + torn)
        assert len(readable(path).entries) == 1
        reserve(path, None, CHARGE)
        assert len(only(path).entries) == 2
        assert path.stat().st_size == len(content)


LABELS = np.array([0, 1, 1, 0, 1], dtype=np.int8)


def charged(path, labels=LABELS):
    reserve(path, None, replace(raw_charge(1), fingerprint=data_fingerprint(labels)))
    return only(path).entries[-1].charge.fingerprint


def test_it_is_the_same_for_the_same_rows_under_one_ledger_alone(path, tmp_path):
    one = charged(path)
    assert charged(path) == one
    assert charged(path, 1 - LABELS) != one
    assert charged(path, LABELS[:-1]) != one
    (tmp_path / "other").mkdir()
    create_ledger(tmp_path / "other" / "l", 100.0, 1e-5)
    assert charged(tmp_path / "other" / "l") != one
    # What the file holds has nothing of the hash that anybody could compute.
    assert data_fingerprint(LABELS)[:8].encode() not in path.read_bytes()


def test_the_key_is_a_file_beside_the_ledger_for_its_owner_alone(path, tmp_path):
    reserve(path, None, raw_charge(1))
    assert [file.name for file in tmp_path.iterdir()] == ["l"]
    one = charged(path)
    key = tmp_path / "l.key"
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
    key = tmp_path / "l.key"
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
