"""Counting the records: noise of the size that is paid for, and never less than one."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kstest

from dplasso import DPLogisticRegression
from dplasso.estimators.fitting import method_of
from dplasso.phases.contract import NO_SNAPSHOT, Fit
from dplasso.phases.count import entering, levels, noisy_counts
from dplasso.phases.released import Released
from dplasso.phases.releases import Counted
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import ONE_THREAD
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


class TestEntering:
    SPANS = ((16, 4, 20), (64, 20, 84), (16, 90, 106))

    @pytest.mark.parametrize(
        ("told", "n_outputs", "size"),
        [
            (0.0, 1, 20),
            (79.0, 1, 20),
            (80.0, 1, 52),
            (80.0, 2, 20),
            (2559.0, 1, 52),
            (2560.0, 1, 116),
        ],
    )
    def test_finer_levels_need_more_records_and_budget(self, told, n_outputs, size):
        columns = entering(self.SPANS, 116, n_outputs, told)
        assert columns.size == size
        # What is in no span is always there.
        assert {0, 3, 84, 89, 115} <= set(columns.tolist())


def test_levels_follow_from_the_noisy_count_alone():
    budget = DPLogisticRegression(1.0, classes=[0, 1])
    budget = method_of(budget).cost()
    phase = levels(((16, 4, 20), (64, 20, 84)), 85, 1)
    for count, size in ((10.0, 5), (1_000.0, 21), (1e6, 85)):
        released = Released().then(0.01, Counted(np.array([count / 2, count / 2]), 1.0))
        fit = Fit(budget, SimpleNamespace(shape=(500, 85)), random_stream(0), ONE_THREAD)
        entered = phase.begin(fit, released, 0.0, NO_SNAPSHOT).release()
        assert (85 if entered is None else entered.columns.size) == size
        assert phase.share(budget, released) == 0.0
