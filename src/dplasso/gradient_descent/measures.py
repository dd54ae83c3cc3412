"""What a fit releases of its records besides gradients: their number, and energies of columns.

Each is paid for by a share of ``mu^2`` (docs/logistic.md).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.counts import Classes, noisy_counts
from dplasso.gradient_descent.energies import NO_LOADS, reach_of, total_energy
from dplasso.gradient_descent.plan import RunPlan
from dplasso.gradient_descent.solve import gradient_unit
from dplasso.gradient_descent.state import NOWHERE
from dplasso.losses.balance import DEVIATIONS, balanced_weights
from dplasso.matrix.unit_rows import Scaling
from dplasso.privacy.mechanisms.gaussian import COUNT_SHARE, GaussianSteps
from dplasso.privacy.parameters import share_bits
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import Gaussian, release


@dataclass(frozen=True)
class Measures:
    """Releases of a fit; the members as of `GradientRun`."""

    plan: RunPlan
    mechanism: GaussianSteps
    records: Any
    stream: RandomStream
    classes: Classes | None

    def mu(self, share: float) -> float:
        """Return the mu of a share of the budget that the count leaves."""
        counted = self.plan.n_records is None and self.mechanism.count_sensitivity > 0
        left = 1.0 - COUNT_SHARE if counted else 1.0
        return self.mechanism.mu * math.sqrt(left * share)

    def deviation(self, share: float) -> float:
        """Return the standard deviation of the energies' noise; 0 without privacy."""
        return self.mechanism.unit_sensitivity / self.mu(share)

    def count(self) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return N, as given or counted privately, and the margins to start from, if any.

        Then the counts of classes that these weigh, with room for the noise.
        """
        if self.plan.n_records is not None:
            return float(self.plan.n_records), NOWHERE, NOWHERE
        counts, part_bits = [self.records.counted], 0
        if self.classes is not None:
            counts, part_bits = self.classes.counts()
        moved, mu = self.mechanism.count_sensitivity, self.mechanism.mu * math.sqrt(COUNT_SHARE)
        noisy = noisy_counts(counts, moved, mu, self.stream, part_bits)
        if self.classes is None:
            return float(noisy[0]), NOWHERE, NOWHERE
        if self.classes.loss is not None:
            # What is within the noise is then no large part of any.
            return float(noisy.sum()), NOWHERE, noisy + DEVIATIONS * moved / mu
        return float(noisy.sum()), self.beyond(self.classes.offset(noisy, moved / mu)), NOWHERE

    def weighed(self, counts: NDArray[np.float64], n_records: float) -> tuple[Any, float]:
        """Return the loss of classes that weigh the same by their counts, and what all weigh."""
        weighed = None if self.classes is None else self.classes.loss
        assert weighed is not None, "classes have counts where they are weighed"
        weights = balanced_weights(counts)
        weight = min(n_records, float(weights @ counts))
        # Of more records, shares of sums have fewer bits.
        same = share_bits(n_records) == share_bits(weight)
        return weighed(weights), weight if same else n_records

    def beyond(self, margins: Any) -> NDArray[np.float64]:
        """Return margins as far as they are beyond twice what noise will move them, shape (K,)."""
        limit = 2.0 * self.plan.stages[-1].kappa
        return np.atleast_1d(margins - np.clip(margins, -limit, limit))

    def energies(
        self,
        scaling: Scaling,
        share: float,
        n_records: float,
        loads: NDArray[np.int64] = NO_LOADS,
    ) -> tuple[NDArray[np.int64], float]:
        """Release the energies of the columns that are kept, and counts of rows by their loads.

        Returns: these, and their unit.
        """
        return self._released(scaling, share, n_records, lambda totals: totals, loads)

    def reach(self, scaling: Scaling, share: float, n_records: float) -> float:
        """Release how long rows are in the columns that are kept, about."""
        return reach_of(*self._released(scaling, share, n_records, total_energy), n_records)

    def _released(
        self,
        scaling: Scaling,
        share: float,
        n_records: float,
        statistic: Any,
        loads: NDArray[np.int64] = NO_LOADS,
    ) -> tuple[NDArray[np.int64], float]:
        """Release a statistic of the energies, to which no record adds more than a unit, in L2."""
        deviation = self.deviation(share)
        unit = gradient_unit(1.0, deviation, share_bits(n_records))
        totals = statistic(self.records.energies(scaling._replace(reach=1.0), unit, loads))
        noise = None
        if deviation:
            noise = Gaussian(deviation * unit, word_buffers(self.stream, 1)[0])
        return release(totals, self.mechanism.unit_sensitivity * unit, noise), unit
