"""Cells are measured once, kept whole, and measured again when anything they depend on changes."""

import json
import os
from dataclasses import replace
from functools import partial

import pytest
from evidence.cells import Cell, finished, run_cells
from evidence.datasets import UnavailableError


def counting_cell(calls, name="one", source=None, **parameters):
    def measure(X, y, advance):
        calls.append(name)
        advance(0.5)
        return {"rows": None if X is None else X.shape[0], "list": (1, 2)}

    return Cell("kind", name, measure, parameters, source)


def test_a_cell_is_measured_once_for_its_parameters(tmp_path):
    calls = []
    first, same = run_cells([counting_cell(calls, a=1), counting_cell(calls, a=1)], tmp_path)
    assert first == same == run_cells([counting_cell(calls, a=1)], tmp_path)[0]
    assert calls == ["one"]
    # As JSON holds it, on the first run too.
    assert first["list"] == [1, 2]
    run_cells([counting_cell(calls, a=2)], tmp_path)
    assert len(calls) == 2


@pytest.mark.parametrize("damage", ["", "{", '{"key": 1}', "[]"])
def test_damaged_file_does_not_count(tmp_path, damage):
    calls = []
    cell = counting_cell(calls)
    run_cells([cell], tmp_path)
    cell.path(tmp_path).write_text(damage)
    assert finished(cell, tmp_path) is None
    run_cells([cell], tmp_path)
    assert len(calls) == 2
    assert json.loads(cell.path(tmp_path).read_text())["result"]


def test_interrupted_run_goes_on_where_it_was(tmp_path):
    calls = []

    def interrupt(X, y, advance):
        raise KeyboardInterrupt

    good, bad = counting_cell(calls, "good"), counting_cell(calls, "bad")
    with pytest.raises(KeyboardInterrupt):
        run_cells([good, replace(bad, measure=interrupt)], tmp_path)
    run_cells([good, bad], tmp_path)
    assert calls == ["good", "bad"]


def measured_apart(number):
    return {"twice": 2 * number, "process": os.getpid()}


def lost():
    os.abort()


def not_here():
    raise UnavailableError("no such data")


def test_apart_is_another_process_and_a_lost_one_is_told(tmp_path):
    good = Cell("kind", "good", partial(measured_apart, 4), apart=True)
    others = [Cell("kind", work.__name__, work, apart=True) for work in (lost, not_here)]
    ended = {}
    results = run_cells(
        [good, *others], tmp_path, ended=lambda cell, one: ended.update({cell.name: one}), jobs=2
    )
    assert results[0]["twice"] == 8
    assert results[0]["process"] != os.getpid()
    assert "was killed" in results[1]["failure"]
    assert results[2] == {"left_out": "no such data"}
    assert set(ended) == {"good", "lost", "not_here"}
    assert json.loads(good.path(tmp_path).read_text())["peak_memory_bytes"] > 0
    # What has failed is tried again, what has not is not.
    again = run_cells([good, *others], tmp_path)
    assert again[0] == results[0]
    assert run_cells([good], tmp_path, again=True)[0]["process"] != results[0]["process"]
    assert finished(others[1], tmp_path) is None


def test_what_was_measured_elsewhere_stays_where_it_cannot_be_measured(tmp_path):
    def cell(result):
        return Cell("kind", "name", lambda *_: result)

    run_cells([cell({"value": 1})], tmp_path)
    run_cells([cell({"left_out": "not installed"})], tmp_path, again=True)
    assert finished(cell({}), tmp_path) == {"value": 1}
