"""People are told when they wait for the compiler, and only then."""

import time

import pytest
from numba import njit

from dplasso.runtime.compilation import COMPILING, announce_compilation


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
