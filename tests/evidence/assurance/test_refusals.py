"""Records that cannot be used are refused before anything private is computed from any record.

A spy stands in for every compiled function that Python calls, and the stream of random words is
looked at after the refusal.
"""

import sys

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from dplasso.fit import frank_wolfe as method_module
from dplasso.fit import records as records_module
from dplasso.fit import run as run_module
from neighbours import INPUT_KINDS, common_records
from recorder import words_drawn

FORMS = [name for name in INPUT_KINDS if name != "list"]


# Reading files and checking the data come before training; searches, partitions and audits train
# through the same kernels.
BEFORE = ("data", "datasets", "matrix", "tuning", "cluster", "audit")


def kernels():
    """Yield module and name of every compiled function a fit may enter from Python."""
    for name, module in list(sys.modules.items()):
        for attribute, value in list(vars(module).items()) if name.startswith("dplasso.") else ():
            if isinstance(value, Dispatcher):
                home = value.py_func.__module__
                if home.split(".")[1] not in BEFORE or home == "dplasso.matrix.orientations":
                    yield module, attribute


@pytest.fixture
def spies(monkeypatch, private_model):
    """Note every stream made, every kernel entered from Python and every call of the solver."""
    # Compile first: the compiler cannot see through a spy.
    private_model().fit(*common_records())
    streams, entered = [], []
    make_stream = run_module.random_stream

    def stream(*given):
        streams.append(make_stream(*given))
        return streams[-1]

    def spy(name, function):
        def call(*given, **options):
            entered.append(name)
            return function(*given, **options)

        return call

    calls = (
        (records_module, "design_of"),
        (method_module, "FrankWolfe"),
        (run_module, "run_in_chunks"),
    )
    for module, name in (*kernels(), *calls):
        monkeypatch.setattr(module, name, spy(name, getattr(module, name)))
    monkeypatch.setattr(run_module, "random_stream", stream)
    return streams, entered


def in_form(form, X):
    dtype, make = INPUT_KINDS[form]
    return make(X.astype(dtype))


def test_the_spies_see_a_fit_that_is_not_refused(private_model, spies):
    streams, entered = spies
    private_model().fit(*common_records())
    assert len(streams) == 1
    assert words_drawn(streams[0]) > 0
    assert {"design_of", "FrankWolfe", "run_in_chunks", "run_sparse"} <= set(entered)


def refused(private_model, spies, data, message, **options):
    streams, entered = spies
    with pytest.raises(ValueError, match=message):
        private_model(**options).fit(*data)
    assert entered == []
    assert [words_drawn(stream) for stream in streams] in ([], [0])


@pytest.mark.parametrize("place", [0, 17])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [name for name in FORMS if "store" not in name])
def test_values_that_are_no_numbers(private_model, spies, form, value, place):
    X, y = common_records()
    X[place, 3] = value
    refused(private_model, spies, (in_form(form, X), y), "NaN|infinity")


@pytest.mark.parametrize("form", FORMS)
def test_a_label_that_was_not_declared(private_model, spies, form):
    X, y = common_records()
    y[5] = 2
    message = "not one of the declared classes"
    refused(private_model, spies, (in_form(form, X), y), message, classes=(0, 1))


@pytest.mark.parametrize("label", [np.nan, np.inf])
def test_a_label_that_is_no_number(private_model, spies, label):
    X, y = common_records()
    refused(private_model, spies, (X, np.where(np.arange(y.size) == 5, label, y)), "NaN|infinity")
