"""What a fit releases that counts the classes, draws columns and refits their weights."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.transcript import NO_VERTICES, Transcript
from dplasso.gradient_descent.release import (
    UNCHANGED,
    Calibration,
    NoisyWeights,
    noisy_weights_from,
    same_arrays,
)
from dplasso.gradient_descent.state import GradientState, gradient_state_from


@dataclass(frozen=True)
class StagedRelease:
    """Counts, vertices and refitted weights; a `dplasso.model.release.Release`.

    Attributes
    ----------
    done, n_steps : int
        Steps done and to be done.
    counts : ndarray of float64, shape (2,) or (K,)
        Noisy numbers of the records of each class.
    offset : ndarray of float64, shape (1,) or (K,)
        Where the margins of the vertices start, from the counts; of one margin, those of the refit
        too.
    vertices : VertexRelease
        The columns drawn; none where all were taken.
    weights : NoisyWeights, GradientState or None
        The refit on the columns of the vertices, ascending, or on all; a state while it is under
        way, None before it and where there is none.
    calibration : Calibration or None
        What stretches the margins of the vertices where there is no refit.
    """

    kind: ClassVar[str] = "staged"
    done: int
    n_steps: int
    counts: NDArray[np.float64]
    offset: NDArray[np.float64]
    vertices: VertexRelease
    weights: NoisyWeights | GradientState | None = None
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        stretched = self.calibration or UNCHANGED
        known = [*self.offset, self.vertices.l1_radius, stretched.slope, *stretched.shift]
        numbers = np.array([*self.counts, *known])
        n_classes = max(2, self.n_outputs)
        if self.counts.shape != (n_classes,) or not np.isfinite(numbers).all():
            raise ValueError("a number of its release is not finite")
        fitting = self.offset.shape == (self.n_outputs,) and self.vertices.late_start >= 0
        if not (fitting and 0 <= self.done <= self.n_steps):
            raise ValueError("the numbers of its release do not fit together")
        if self.weights is not None and self.weights.n_features != self.columns.size:
            raise ValueError("its weights are not those of its vertices")
        if isinstance(self.weights, GradientState) and self.done == self.n_steps:
            raise ValueError("its refit is not complete")

    def __len__(self) -> int:
        return self.done

    @property
    def n_outputs(self) -> int:
        """Margins of a record."""
        return self.vertices.n_outputs

    @property
    def columns(self) -> NDArray[np.int64]:
        """Columns that may have a weight, ascending, shape (k,)."""
        if not len(self.vertices):
            return np.arange(self.vertices.n_features)
        return self.vertices.columns

    @property
    def refitted(self) -> NoisyWeights | None:
        """The weights of unit rows of the columns, where there was a refit."""
        return self.weights if isinstance(self.weights, NoisyWeights) else None

    @property
    def standard_error(self) -> float | None:
        """Standard deviation of each refitted weight by the noise alone."""
        return None if self.refitted is None else self.refitted.standard_error

    def coefficients(self) -> tuple[Any, NDArray[np.float64]]:
        """Compute the linear model.

        Returns `coefficients`, shape (K, D): weights of the columns; of a refit, for rows of unit
        length in these columns.
        `intercept`, shape (K,): the constant terms of the margins.

        Raises ValueError if the fit is not complete.
        """
        if self.done < self.n_steps:
            raise ValueError("a fit that is not complete has no model")
        if self.refitted is None:
            coefficients, intercept = self.vertices.coefficients()
            if self.calibration is not None:
                slope, shift = self.calibration
                return coefficients * slope, (intercept + self.offset) * slope + np.array(shift)
        else:
            named = replace(
                self.refitted, n_features=self.vertices.n_features, columns=self.columns
            )
            coefficients, intercept = named.coefficients()
            if self.n_outputs > 1:
                return coefficients, intercept
        return coefficients, intercept + self.offset

    def agrees_with(self, other: Any) -> bool:
        """Return whether two runs can be one, as far as both have come."""
        if not isinstance(other, StagedRelease) or not (self.counts.any() and other.counts.any()):
            return True
        if not np.array_equal(self.counts, other.counts):
            return False
        if not self.vertices.agrees_with(other.vertices):
            return False
        if self.done != other.done:
            return True
        if self.calibration != other.calibration:
            return False
        if self.weights is None or other.weights is None:
            return True
        return same_arrays(self.weights.arrays(), other.weights.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file has to hold of it."""
        nothing = np.zeros(0)
        inner = {} if self.weights is None else self.weights.arrays()
        stage = 0.0 if self.weights is None else 1.0 if self.refitted is None else 2.0
        vertices = self.vertices
        first, *others = self.offset.tolist()
        numbers = [self.done, self.n_steps, first, vertices.l1_radius, vertices.late_start]
        return {
            **vertices.arrays(),
            "counts": np.array(self.counts),
            # The first offset stands where that of one output always stood.
            "plan": np.array([*numbers, stage, float(vertices.fit_intercept), *others]),
            "calibration": nothing
            if self.calibration is None
            else np.array([self.calibration.slope, *self.calibration.shift]),
            **{name: inner.get(name, nothing) for name in ("weights", "velocity", "averaged")},
            "numbers": inner.get("numbers", nothing),
        }


STAGED_ARRAYS = {
    "vertex": "<i8",
    "sign": "|i1",
    "counts": "<f8",
    "plan": "<f8",
    "calibration": "<f8",
    "weights": "<f8",
    "velocity": "<f8",
    "averaged": "<f8",
    "numbers": "<f8",
}


def staged_from(
    arrays: dict[str, NDArray[Any]], feature_bound: float, n_features: int
) -> StagedRelease:
    """Rebuild a release from what a file holds.

    Raises ValueError if its parts do not fit together.
    """
    done, n_steps, offset, l1_radius, late_start, stage, constant, *others = arrays["plan"].tolist()
    vertices = VertexRelease(
        transcript=Transcript(arrays["vertex"].astype(np.int64), arrays["sign"]),
        n_features=n_features,
        l1_radius=l1_radius,
        feature_bound=feature_bound,
        fit_intercept=bool(constant),
        late_start=int(late_start),
        n_outputs=1 + len(others),
    )
    slope, *shift = arrays["calibration"].tolist() or [None]
    calibration = None if slope is None else Calibration(slope, tuple(shift))
    offsets = np.array([offset, *others])
    plain = StagedRelease(
        int(done), int(n_steps), arrays["counts"], offsets, vertices, calibration=calibration
    )
    if stage == 0.0:
        return plain
    inner = arrays | {"columns": np.zeros(0, dtype=np.int64)}
    size = plain.columns.size
    weights = noisy_weights_from(inner, size) if stage == 2.0 else gradient_state_from(inner, size)
    return replace(plain, weights=weights)


def empty_staged(
    n_steps: int, feature_bound: float, n_features: int, n_outputs: int = 1
) -> StagedRelease:
    """Return the release of a fit before anything is counted."""
    vertices = VertexRelease(
        NO_VERTICES,
        n_features,
        0.0,
        feature_bound,
        fit_intercept=False,
        n_outputs=n_outputs,
    )
    return StagedRelease(0, n_steps, np.zeros(max(2, n_outputs)), np.zeros(n_outputs), vertices)
