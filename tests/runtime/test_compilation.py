"""People are told when they wait for the compiler, and only then."""

import gc
import logging
import sys
import time

import numpy as np
import pytest
from numba import njit
from numba.core import event
from numba.core.errors import TypingError

from dplasso import DPLogisticRegression
from dplasso.runtime.compilation import COMPILING, announce_compilation, say_once
from dplasso.runtime.progress import SILENT


def fresh_kernel():
    """Return a kernel that nobody has compiled yet."""

    @njit
    def double(x):
        return 2 * x

    return double


def test_compiling_is_announced_once():
    said = []
    began = time.perf_counter()
    with announce_compilation(said.append) as spent:
        assert fresh_kernel()(2) == 4
        first = spent.seconds
        assert fresh_kernel()(2.5) == 5.0
    assert said == [COMPILING]
    assert 0 < first < spent.seconds < time.perf_counter() - began


def test_it_is_announced_before_it_is_done():
    class StopError(Exception):
        pass

    def stop(line):
        raise StopError

    kernel = fresh_kernel()
    with announce_compilation(stop), pytest.raises(StopError):
        kernel(1)
    assert kernel.signatures == []


def test_compiled_kernels_are_not_announced():
    said, kernel = [], fresh_kernel()
    kernel(1)
    with announce_compilation(said.append) as spent:
        assert kernel(3) == 6
    assert said == []
    assert spent.seconds == 0


def test_an_error_inside_ends_the_listening():
    said = []
    with pytest.raises(KeyError), announce_compilation(said.append):
        raise KeyError("inside")
    fresh_kernel()(1)
    assert said == []


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_collected_again_when_a_kernel_is_compiled(collecting):
    seen = []

    class Listener(event.Listener):
        def on_start(self, _):
            seen.append(gc.isenabled())

        def on_end(self, _):
            pass

    (gc.enable if collecting else gc.disable)()
    try:
        with event.install_listener("numba:compile", Listener()):
            assert fresh_kernel()(2) == 4
        assert gc.isenabled() == collecting
        assert seen == [False]
        with pytest.raises(TypingError):
            fresh_kernel()(object())
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


def test_it_can_be_announced_when_it_has_lasted():
    said = []
    with announce_compilation(said.append, after=1e-6):
        fresh_kernel()(2)
        assert said == []
        fresh_kernel()(2.5)
    assert said == [COMPILING]


class Clock:
    """A clock that makes every compilation last."""

    now = 0.0

    def perf_counter(self):
        self.now += SILENT / 2
        return self.now


@pytest.fixture
def slow_fit(monkeypatch):
    """Give fits during which the compiler takes long, and a process that has said nothing yet."""
    monkeypatch.setattr("dplasso.runtime.compilation.time", Clock())
    say_once.cache_clear()

    def fit(**settings):
        class Compiling(DPLogisticRegression):
            def get_params(self, deep=True):
                for _ in range(4):
                    event.start_event("numba:compile")
                    event.end_event("numba:compile")
                return super().get_params(deep)

        X, y = np.eye(8), np.arange(8) % 2
        for _ in range(2):
            Compiling(1.0, classes=[0, 1], **settings).fit(X, y)

    yield fit
    say_once.cache_clear()


def test_a_fit_says_once_on_a_terminal_that_it_compiles(slow_fit, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    slow_fit()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dplasso: compiling")
    assert "verbose=0" in line


def test_elsewhere_it_is_in_the_log(slow_fit, capsys, caplog):
    caplog.set_level(logging.INFO, "dplasso")
    slow_fit()
    assert capsys.readouterr().err == ""
    (record,) = (one for one in caplog.records if one.name == "dplasso")
    assert "compiling" in record.message


def test_verbose_0_says_nothing(slow_fit, capsys, caplog, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    caplog.set_level(logging.INFO, "dplasso")
    slow_fit(verbose=0)
    assert capsys.readouterr().err == ""
    assert not [one for one in caplog.records if one.name == "dplasso"]
