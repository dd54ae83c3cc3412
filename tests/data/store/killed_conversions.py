"""Kill a conversion at each of its system calls in turn; run by test_writing.

Usage: killed_conversions.py DIRECTORY replace|new. A process of its own, since it forks: each
fork writes a store and sends itself SIGKILL at its n-th call that changes the disk, half-way
through where the call writes. Prints one JSON object.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

from data.store.reference import assert_holds, block_source, random_matrix, write_blocks
from dplasso import StoreError, open_store

CALLS = ("pwrite", "ftruncate", "posix_fallocate", "fsync", "mkdir", "rename", "replace", "unlink")
CALLS += ("rmdir", "open")
OLD = random_matrix(9, 20, 0.3, seed=5)
NEW = random_matrix(30, 60, 0.1, seed=6)


def labels(X):
    return np.arange(X.shape[0]) % 2


def convert(path):
    return write_blocks(block_source(NEW, labels(NEW)), path, force=True)


def kill_at(call_number):
    """Replace the calls by ones that count, and kill this process at the given one."""
    done = 0

    def counted(original):
        def call(*arguments, **options):
            nonlocal done
            done += 1
            if done == call_number:
                if original is pwrite:
                    pwrite(arguments[0], arguments[1][: len(arguments[1]) // 2], *arguments[2:])
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **options)

        return call

    pwrite = os.pwrite
    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


def main():
    directory, mode = Path(sys.argv[1]), sys.argv[2]
    os.fsync = lambda descriptor: None  # a killed process loses nothing that it has written
    convert(directory / "warm")  # compiles, so that the forks need not
    shutil.rmtree(directory / "warm")
    outcomes = {"refused": 0, "old": 0, "new": 0}
    for number in range(1, 10_000):
        place = directory / "train.store"
        if mode == "replace":
            write_blocks(block_source(OLD, labels(OLD)), place)
        child = os.fork()
        if child == 0:
            kill_at(number)
            convert(place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        survived = os.WIFEXITED(status)
        assert survived or os.WTERMSIG(status) == signal.SIGKILL, status
        try:
            store = open_store(place, verify=True)
        except StoreError:
            outcomes["refused"] += 1
        else:
            is_new = store.shape == NEW.shape
            X = NEW if is_new else OLD
            assert is_new or mode == "replace"
            assert_holds(store, X, labels(X))
            outcomes["new" if is_new else "old"] += 1
        left = place.with_name("train.store.partial")
        if left.exists():
            try:
                open_store(left)
            except StoreError:
                pass
            else:
                raise AssertionError("an unfinished store was opened")
        assert_holds(convert(place), NEW, labels(NEW))
        assert [entry.name for entry in directory.iterdir()] == ["train.store"]
        shutil.rmtree(place)
        if survived:
            break
    print(json.dumps({"calls": number - 1, **outcomes}))


main()
