"""A record that must not count changes nothing else, to the last bit."""

import numpy as np
import pytest

import isolated_rows
from dplasso.matrix import unit_rows
from isolated_fits import KINDS
from isolated_records import Choices

TRIALS = 24


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_must_not_count_changes_nothing(kind, capsys):
    found = isolated_rows.run(TRIALS // len(KINDS), (kind,))
    assert found.failed == 0, capsys.readouterr().err
    assert found.statistics > 0


def test_a_shared_decision_is_caught(monkeypatch):
    """Power: entries are rounded by how large the largest of all is."""
    plain = unit_rows.compress

    def shared(X, *arguments):
        matrix, by_rows = plain(X, *arguments)
        unit = np.float32(np.abs(matrix.values).max(initial=1.0)) / 64
        return matrix._replace(values=np.round(matrix.values / unit) * unit), by_rows

    monkeypatch.setattr(unit_rows, "compress", shared)
    found = isolated_rows.Found()
    trials = (isolated_rows.compare(Choices(n), ("gradients",), found) for n in range(TRIALS))
    assert any(trials)
