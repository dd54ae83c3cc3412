"""What a fit by noisy gradient descent has released when it is interrupted: for checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.release import (
    NO_ENERGIES,
    NoisyWeights,
    check_ascending,
    check_energies,
    same_arrays,
    with_energies,
)

_RUN = ("weights", "velocity", "averaged")
NOWHERE = np.zeros(0)


@dataclass(frozen=True)
class GradientState:
    """A fit after `done` gradients, functions of the noisy ones, so released with them.

    `weights`, `velocity`, `averaged`: of the run that is under way; empty after step 0.
    `columns`: columns of a later run; empty in the first.
    `numbers`, shape (3,) or (3 + K,): the count, 0 before there is one, the standard error of the
    starting weights, and a bound on the largest eigenvalue of the rows' Gram matrix; then, where
    classes are counted, the margins that the first run starts from.
    `energies`: as of `NoisyWeights`, of the columns of the run.
    `start`, shape (2 + K,): slope and constants of a public start, once they are found, and how
    long rows are in the columns of the run; or empty.
    `counts`, shape (K,): of the classes, with room for the noise, where these are weighed by them;
    or empty.
    """

    kind: ClassVar[str] = "gradient state"
    method: ClassVar[tuple[str, str]] = NoisyWeights.method
    types: ClassVar[dict[str, str]] = {
        **dict.fromkeys((*_RUN, "numbers"), "<f8"),
        "columns": "<i8",
        "energies": "<f4",
        "start": "<f8",
        "class_counts": "<f8",
    }
    optional: ClassVar[frozenset[str]] = frozenset({"energies", "start", "class_counts"})
    n_outputs: ClassVar[int] = 1

    done: int
    n_features: int
    weights: NDArray[np.float64]
    velocity: NDArray[np.float64]
    averaged: NDArray[np.float64]
    columns: NDArray[np.int64]
    numbers: NDArray[np.float64]
    energies: NDArray[np.float32] = field(default_factory=lambda: NO_ENERGIES)
    start: NDArray[np.float64] = field(default_factory=lambda: NOWHERE)
    counts: NDArray[np.float64] = field(default_factory=lambda: NOWHERE)

    vertices = refitted = n_records = standard_errors = scales = None
    prior_slope = 1.0

    def __post_init__(self) -> None:
        check_ascending(self.columns, self.n_features)
        sizes = (self.weights.shape, self.velocity.shape, self.averaged.shape)
        if len(set(sizes)) > 1 or self.numbers.size < 3 or self.done < 0:
            raise ValueError("the arrays of its state do not fit together")
        if not all(np.isfinite(array).all() for array in self.arrays().values()):
            raise ValueError("a number of its state is not finite")
        check_energies(self.energies, {self.columns.size, self.n_features})

    def __len__(self) -> int:
        return self.done

    def complete(self, n_steps: int) -> bool:  # noqa: ARG002
        """Return False: only weights complete a fit."""
        return False

    def coefficients(self) -> tuple[Any, NDArray[np.float64]]:
        """Raise: a fit that is not complete has no model."""
        raise ValueError("a fit that is not complete has no model")

    def agrees_with(self, other: Any) -> bool:
        """Return whether two runs can be one: the same count, and state where they are as far."""
        if not (isinstance(other, GradientState) and self.numbers[0] and other.numbers[0]):
            return True
        if self.done != other.done:
            return bool(self.numbers[0] == other.numbers[0])
        return same_arrays(self.arrays(), other.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file has to hold of it."""
        given = {name: getattr(self, name) for name in (*_RUN, "columns")}
        numbers = {"numbers": np.concatenate([[float(self.done)], self.numbers])}
        # A fit that draws columns before has counts of its own.
        known = {"start": self.start, "class_counts": self.counts}
        known = {name: array for name, array in known.items() if array.size}
        return given | numbers | known | with_energies(self.energies)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], public: Mapping[str, Any]
    ) -> "GradientState":
        """Rebuild a release from what a file holds, and the fit's parameters and sizes."""
        numbers, *parts = (arrays[name].astype(np.float64) for name in ("numbers", *_RUN))
        columns = arrays["columns"].astype(np.int64)
        if numbers.size == 3:
            # Of version 0.2.0, which bounded the curvature by the count.
            numbers = np.append(numbers, numbers[1])
        run = dict(zip(_RUN, parts, strict=True))
        return cls(
            int(numbers[0]),
            public["n_features"],
            **run,
            columns=columns,
            numbers=numbers[1:],
            energies=arrays.get("energies", NO_ENERGIES).astype(np.float32),
            start=arrays.get("start", NOWHERE),
            counts=arrays.get("class_counts", NOWHERE),
        )

    @classmethod
    def empty(cls, public: Mapping[str, Any], *known: Any) -> "GradientState":
        """Return the state of a fit before its first gradient, or before anything is counted.

        `known`: its `numbers` and the arrays after these.
        """
        columns, known = np.zeros(0, dtype=np.int64), known or (np.zeros(3),)
        return cls(0, public["n_features"], *3 * (np.zeros(0),), columns, *known)
