"""Counting the records, all of them or those of each class, privately."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.phases.contract import AtOnce, Fit, Snapshot, Steps
from dplasso.phases.releases import Counted, Released
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.gaussian_noise import LARGEST_SCALE
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import Gaussian, release
from dplasso.privacy.wording import number_of_classes

# Share of the budget of counting the records.
COUNT_SHARE = 0.01


@dataclass(frozen=True)
class Count:
    """Count the records.

    `loss`: knows the classes; None counts all records alike.
    `n_records`: N, where it is public: then only counts by class need noise.
    `n_classes`: how many counts there are.
    `by_weight`: without privacy, whether the sum of the weights stands for N.
    """

    loss: Any = None
    n_records: int | None = None
    n_classes: int = 1
    by_weight: bool = False

    name: ClassVar[str] = "count"
    most_steps: ClassVar[int] = 0

    @property
    def draws(self) -> Draws:
        """A variate for each count."""
        return Draws(gaussian=float(max(2, self.n_classes)))

    def words(self, task: Any, n_steps: int) -> str:  # noqa: ARG002
        """Say what is counted; nothing where the number of records is public."""
        if self.loss is None:
            return "" if self.n_records is not None else "a noisy count of the records"
        if task.classes.size:
            return f"noisy counts of the {number_of_classes(task.classes.size)} classes"
        return "noisy counts at both ends of the interval of the targets"

    def numbers(self, budget: Budget) -> dict[str, float]:
        """Return the share and the sensitivity."""
        return {"share": COUNT_SHARE, "sensitivity": self.moved(budget)}

    def share(self, budget: Budget, released: Released) -> float:  # noqa: ARG002
        """Return the share: none where neighbours agree in the number."""
        return COUNT_SHARE if self.moved(budget) > 0.0 else 0.0

    def moved(self, budget: Budget) -> float:
        """Return how far the counts can move between neighbours, in L2."""
        if self.loss is None and self.n_records is not None:
            return 0.0
        return budget.moved_counts(by_class=self.loss is not None)

    def begin(self, fit: Fit, released: Released, mu: float, snapshot: Snapshot) -> Steps:  # noqa: ARG002
        """Return the count as steps."""
        return AtOnce(lambda: self._counted(fit, mu))

    def _counted(self, fit: Fit, mu: float) -> Counted:
        records = fit.records
        if self.by_weight:
            return Counted(np.array([records.total_weight]), 0.0)
        if self.loss is None:
            exact, part_bits = [self.n_records or records.counted], 0
        else:
            exact, part_bits = records.counts(self.loss)
        moved = self.moved(fit.budget)
        noisy = noisy_counts(exact, moved, mu, fit.stream, part_bits)
        if self.n_records is not None and not records.weighted:
            # The sum is known: an excess over it is taken from all counts alike.
            noisy = np.maximum(1.0, noisy - (noisy.sum() - self.n_records) / noisy.size)
        return Counted(noisy, 0.0 if math.isinf(mu) or not moved else moved / mu)


def noisy_counts(
    counts: list[int], sensitivity: float, mu: float, stream: RandomStream, part_bits: int = 0
) -> NDArray[np.float64]:
    """Count records privately with a budget of `mu`: at least 1 each if there is noise.

    `counts`: exact, in parts of a record, `part_bits` bits of it.
    `sensitivity`: how far they can move between neighbours, in L2; 0 releases them as they are.
    """
    exact = np.array(counts, dtype=np.int64)
    if sensitivity == 0 or math.isinf(mu):
        return release(exact, sensitivity * 2.0**part_bits, None) / 2.0**part_bits
    # In units of 2^-32, coarser where the noise is so large that its words would not reach.
    scale, bits = sensitivity / mu * 2.0**32, 32
    while scale > LARGEST_SCALE:
        scale, bits = scale / 2.0, bits - 1
    # Beyond, no part makes up a unit, and a count that were rounded could still move by one.
    exact = exact << bits - part_bits if bits >= part_bits else np.zeros_like(exact)
    noise = Gaussian(scale, word_buffers(stream, 1)[0])
    return np.maximum(1.0, release(exact, sensitivity * 2.0**bits, noise) / 2.0**bits)


def counted_of(released: Released) -> Counted:
    """Return the counts that every plan begins with."""
    found = released.last(Counted)
    assert found is not None, "records are counted first"
    return found
