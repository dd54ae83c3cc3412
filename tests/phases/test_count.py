"""Counting the records: noise of the size that is paid for, and never less than one."""

import math

import numpy as np
import pytest
from scipy.stats import kstest

from dplasso.phases.count import noisy_counts
from gradient_descent.cases import stream
from recorder import recording

ALARM = 1e-6


def counted(count, *rest):
    """Return one noisy count."""
    return float(noisy_counts([count], *rest)[0])


def test_the_count_is_normal_around_the_number_of_records():
    """Kolmogorov-Smirnov on 500 counts; with a false alarm once in a million."""
    counts = [counted(10**6, 3, 0.2, stream(seed)) for seed in range(500)]
    p = kstest((np.array(counts) - 10**6) / 15.0, "norm").pvalue
    assert p > ALARM
    # Noise of half, or of none.
    assert kstest((np.array(counts) - 10**6) / 30.0, "norm").pvalue < ALARM
    assert counted(17, 0, 0.2, stream()) == 17.0
    assert counted(17, 3, math.inf, stream()) == 17.0


def test_each_of_several_counts_has_noise_of_its_own():
    counts = np.array([noisy_counts([500, 500, 500], 1.0, 0.2, stream(k)) for k in range(300)])
    assert np.abs(np.corrcoef(counts.T) - np.eye(3)).max() < 0.3
    for own in counts.T:
        assert kstest((own - 500) / 5.0, "norm").pvalue > ALARM


@pytest.mark.parametrize("sensitivity", [1, 10**6, 10**9])
@pytest.mark.parametrize("mu", [1e-12, 1e-7, 1e-3])
def test_a_count_under_huge_noise_moves_by_no_more_than_is_paid_for(sensitivity, mu):
    """The value that noise is added to, in units of its standard deviation."""
    with recording() as recorder:
        for count in (1000, 1000 + sensitivity):
            counted(count, sensitivity, mu, stream())
    one, other = recorder.releases
    assert (other.statistic[0] - one.statistic[0]) / one.scale <= mu * (1 + 1e-12)


def test_a_count_is_at_least_one():
    assert min(counted(1, 1, 0.01, stream(seed)) for seed in range(20)) == 1.0


def test_parts_of_records_are_counted_like_records():
    for mu in (math.inf, 0.5, 1e-7):
        whole = counted(1000, 1.0, mu, stream())
        assert counted(1000 << 20, 1.0, mu, stream(), 20) == whole
    half = counted((1000 << 20) + (1 << 19), 1.0, 0.5, stream(), 20)
    assert half - counted(1000, 1.0, 0.5, stream()) == pytest.approx(0.5)
