"""A record that must not count changes nothing else, to the last bit."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import isolated_rows
from dplasso.fit import records
from isolated_records import Choices

TRIALS = {"gradients": 24, "scores": 60, "edges": 20}


@pytest.mark.parametrize("kind", TRIALS)
def test_a_record_that_must_not_count_changes_nothing(kind, capsys):
    found = isolated_rows.run(TRIALS[kind], (kind,))
    assert found.failed == 0, capsys.readouterr().err
    assert found.statistics > 0


def test_nor_what_vertices_are_drawn_from():
    """Without the compiler, which would take longer than these fits."""
    paths = os.pathsep.join(filter(None, [".", "tests", os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, isolated_rows.__file__, "12", "draws"],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failed"] == 0


def test_a_weight_that_depends_on_the_others_is_caught_and_made_simpler(monkeypatch):
    """By a millionth of what noise is made for: nothing else would notice."""
    plain = records.targets_of

    def relative(labels, weights=None, within=None):
        if weights is not None:
            weights = np.clip(weights * (1.0 + 2.0**-20 * np.mean(weights)), 0.0, 1.0)
        return plain(labels, weights, within)

    monkeypatch.setattr(records, "targets_of", relative)
    kinds, nothing = ("gradients",), isolated_rows.Found()
    trials = [Choices(number) for number in range(TRIALS["gradients"])]
    wrong = [isolated_rows.compare(trial, kinds, nothing) for trial in trials]
    assert all("moved by" in words[0] for words in wrong if words)
    caught = next(trial for trial, words in zip(trials, wrong, strict=True) if words)
    least = isolated_rows.simpler(caught, kinds)
    assert least.free is not None
    assert len(least.free) < len(caught.made) / 2
    assert "moved by" in isolated_rows.compare(least, kinds, nothing)[0]
